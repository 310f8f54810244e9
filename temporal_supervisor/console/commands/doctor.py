"""The command `doctor`: one row for each thing that a run needs, with the fix if something is wrong."""

import os
from collections.abc import AsyncIterator
from typing import Any

from temporalio.api.enums.v1 import VersionDrainageStatus
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactUnavailable
from temporal_supervisor.console.base.check_rows import CheckRow, Level
from temporal_supervisor.console.base.command import DONE, FAILED, Access, hint, server_address
from temporal_supervisor.console.base.terminal import Report, counted
from temporal_supervisor.console.commands.model_check import model_rows
from temporal_supervisor.console.run.found_runs import recorded_store, roots
from temporal_supervisor.console.run.pollers import SET_CURRENT, WORK, Polled, gone, polled, shown, worker_of
from temporal_supervisor.console.run.standstill import causes_of
from temporal_supervisor.messages import RPC_TIMEOUT
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime import search_attributes
from temporal_supervisor.runtime.connection import ConnectionFailed
from temporal_supervisor.runtime.setting_checks import odd_settings
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.queues import DEPLOYMENT, OUTWARD_QUEUE, WORKFLOW_QUEUE
from temporal_supervisor.supervision.base.trust import is_readable_by_others

_RUNS = 100  # open ones that are looked at, newest first


async def examine(access: Access) -> Report:
    """Check everything that a run needs; exit code 1 if there is a problem."""
    rows = [row async for row in _rows(access)]
    code = FAILED if any(row.level == "problem" for row in rows) else DONE
    return Report(rows, rows, code=code)


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    for odd in odd_settings(access.settings, os.environ):
        yield CheckRow("warning", "settings", odd)
    async for row in model_rows(access.settings):
        yield row
    async for row in _teams(access.settings):
        yield row
    if row_of_keys := open_keys(access.settings):
        yield row_of_keys
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    store_id = None
    try:
        store = await access.store()
        store_id = await store.identity() or ""
        keys = access.settings.keys
        sealed = f", encrypted with key {keys.names[0]}" if keys else ""
        known = f"id {store_id}" if store_id else "without an id yet: the first run that uses it makes one"
        yield CheckRow("ok", "artifact store", f"{store.url}, {known}{sealed}")
    except (ArtifactUnavailable, ValueError) as error:
        url = access.settings.artifacts_url
        fix = "create that bucket, check its credentials," if "://" in url else f"make {url} a folder of yours,"
        text = f"{fix} or let SUPERVISOR_ARTIFACTS_URL name another one"
        yield CheckRow("problem", "artifact store", str(error), text)
    try:
        async for row in server_rows(client, store_id):
            yield row
    except RPCError as error:
        yield CheckRow("problem", "server", f"it stopped answering: {error.message}")


def open_keys(settings: Settings) -> CheckRow | None:
    """Returns a warning about a file of keys that other users can read: a container may mount it so."""
    file = settings.keys_file
    if file is None or not file.is_file() or not is_readable_by_others(file.stat()):
        return None
    return CheckRow("warning", "keys", f"other users of this machine can read {file}", f"`chmod 600 {file}`")


async def _teams(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields a row for each team that can't be used or has such files."""
    from temporal_supervisor.console.commands.team_commands import teams_report  # loads the tools' libraries: 0.3 s

    checked: Any = (await teams_report(settings)).data
    wrong = {team["name"]: [team["error"]] if team["error"] else team["unread"] for team in checked}
    for name, (problem, *more) in ((name, problems) for name, problems in wrong.items() if problems):
        text = f"{problem.rstrip('.')}; and {counted(len(more), 'more file')}" if more else problem
        yield CheckRow("warning", f"team {name}", text, f"correct it; {hint('teams', name)} says more")
    if not any(wrong.values()):
        yield CheckRow("ok", "teams", f"{', '.join(wrong)}: their files can be read")


async def server_rows(client: Client, store_id: str | None) -> AsyncIterator[CheckRow]:
    """Yields the rows. Raises RPCError if the server goes away.

    `store_id` is that of this environment's store: empty if it has none, None if it can't be read.
    """
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    async for row in queue_rows(client):
        yield row
    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        # A run sets the attributes that there were when it began: without one of them the server refuses its tasks.
        fix = "new runs work without: their phase is in the memo; one that began with it stands still until it is back"
        yield CheckRow("warning", "search attributes", warning, fix)
    if not missing:
        yield CheckRow("ok", "search attributes", "all usable")
    if other := await _other_store(client, store_id):
        yield other
    async for row in _open_runs(client):
        yield row


async def queue_rows(client: Client) -> AsyncIterator[CheckRow]:
    """Yields whether each queue and build has a Worker."""
    seen = {queue: await polled(client, queue) for queue in WORK}
    for queue, work in WORK.items():
        workers = seen[queue].workers
        if not all(gone(worker.identity) for worker in workers):
            yield CheckRow("ok", f"queue {queue}", f"{work} are served by {shown(workers)}")
        else:
            last = f", the last one was {shown(workers)}" if workers else ""
            fix = f"start one with {hint('worker', *worker_of(queue)[1])}"
            level: Level = "warning" if queue == OUTWARD_QUEUE else "problem"  # few teams have such tools
            yield CheckRow(level, f"queue {queue}", f"no Worker serves {work}{last}", fix)
    async for row in _build_rows(client, seen[WORKFLOW_QUEUE]):
        yield row


async def _build_rows(client: Client, seen: Polled) -> AsyncIterator[CheckRow]:
    """Yields the builds that runs wait for, and those that are served: a run stays with the build it began with."""
    if why := seen.none_current:
        yield CheckRow("problem", "builds", why, SET_CURRENT)
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=DEPLOYMENT)
    try:
        reply = await client.workflow_service.describe_worker_deployment(request, timeout=RPC_TIMEOUT)
    except RPCError:  # no Worker has named one, or the server has just been told of the first
        return
    info, words = reply.worker_deployment_info, []
    for summary in info.version_summaries:  # the newest first
        build = summary.deployment_version.build_id
        current = build == info.routing_config.current_deployment_version.build_id
        open_runs = summary.drainage_status == VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINING
        if build in seen.served:
            words.append(build + " (current)" * current + " (runs of it are open)" * open_runs)
        elif current or open_runs:
            text = f"no Worker serves it: {'new runs wait for it' if current else 'runs that began with it are open'}"
            fix = f"start one with {hint('worker', SUPERVISOR_BUILD_ID=build)}"
            yield CheckRow("problem", f"build {build}", text, fix)
    if words and not why:
        yield CheckRow("ok", "builds", ", ".join(words))


async def _other_store(client: Client, store_id: str | None) -> CheckRow | None:
    """Returns a problem if the newest run uses another artifact store than this environment, or this one is lost."""
    for execution in await roots(client, 1):
        used = await recorded_store(Run(client, execution.id))
        if used and store_id is not None and used != store_id:
            own = f"the store {store_id}" if store_id else "one without an id: it is not mounted, or was emptied"
            text = f"run '{execution.id}' uses the store {used}, this environment {own}"
            fix = "mount that store again, or set SUPERVISOR_ARTIFACTS_URL to the same store in every process"
            return CheckRow("problem", "artifact store", text, fix)
    return None


async def _open_runs(client: Client) -> AsyncIterator[CheckRow]:
    """Yields a row for each open run of our queue that stands still, or one that says that none does."""
    found = [each.id for each in await roots(client, _RUNS, "Running") if each.task_queue == WORKFLOW_QUEUE]
    still = 0
    for run in (Run(client, run_id) for run_id in found):
        described = await run.describe()
        if updates := (await described.memo()).get("updates"):
            text = f"'{run.id}' has taken {updates} updates: the server allows 2,000"
            fix = "the last ones are kept for resume and extend; decisions go as the signal `decide` then"
            yield CheckRow("warning", "open run", text, fix)
        causes = await causes_of(run, described)
        still += bool(causes)
        for cause in causes:
            fix = f"{cause.helps}; {hint('status', run.id)} says more"
            level: Level = "warning" if cause.waits_for == "person" else "problem"
            yield CheckRow(level, "open run", f"'{run.id}': {cause.cause}", fix)
    if not still:
        yield CheckRow("ok", "open runs", f"{len(found)}, none of them stands still")
