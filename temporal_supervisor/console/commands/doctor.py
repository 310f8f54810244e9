"""The command `doctor`: a row for each thing that a run needs, and the fix for a problem."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer
from temporalio.api.enums.v1 import VersionDrainageStatus
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactUnavailable
from temporal_supervisor.console.base.check_rows import CheckRow, Level
from temporal_supervisor.console.base.command import (
    DONE,
    FAILED,
    Access,
    endpoint,
    hint,
    server_address,
)
from temporal_supervisor.console.base.output_file import Force, check_output, write_file
from temporal_supervisor.console.base.terminal import Report, counted, safe_json
from temporal_supervisor.console.commands.model_check import model_rows
from temporal_supervisor.console.run.found_runs import list_roots, recorded_store, short_id
from temporal_supervisor.console.run.pollers import (
    WORK,
    Polled,
    has_ended_here,
    read_pollers,
    worker_of,
    worker_of_other_store,
    workers_line,
)
from temporal_supervisor.console.run.standstill import causes_of
from temporal_supervisor.messages import RPC_TIMEOUT
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime import search_attributes
from temporal_supervisor.runtime.connection import ConnectionFailed
from temporal_supervisor.runtime.setting_checks import odd_settings
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.queues import (
    DEPLOYMENT,
    MODEL_QUEUE,
    OUTWARD_QUEUE,
    WORKFLOW_QUEUE,
)
from temporal_supervisor.supervision.base.trust import is_readable_by_others

_RUNS = 100  # open ones that are looked at, newest first
_HAS_RUNS = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINING
_SAME_STORE = "set SUPERVISOR_ARTIFACTS_URL to the same store in every process"
# A run sets the attributes that there were when it began: without one of them the server refuses
# its tasks.
_WITHOUT_ATTRIBUTE = (
    "new runs work without it: their phase is in the memo; "
    "a run that began with it is stuck until it is back"
)


async def examine(
    access: Access,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="write a JSON file for a bug report: no secrets, no contents"
        ),
    ] = None,
    force: Force = False,
) -> Report:
    """Check everything that a run needs; exit code 1 if there is a problem."""
    if bundle:
        check_output(bundle, (".json",), force=force)
    rows = [row async for row in _rows(access)]
    if bundle:
        await _write_bundle(access, rows, bundle, force=force)
    code = FAILED if any(row.level == "problem" for row in rows) else DONE
    return Report(rows, rows, code=code)


async def _write_bundle(access: Access, rows: list[CheckRow], file: Path, *, force: bool) -> None:
    from temporal_supervisor.console.report import bug_report  # for this option only

    try:
        client = await access.client()
    except ConnectionFailed:
        client = None
    made = await bug_report.bundle(access.settings, rows, client)
    write_file(file, f"{safe_json(made)}\n".encode(), force=force)


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    names_model = endpoint(access.settings) is not None
    async for row in _own_rows(access.settings, names_model=names_model):
        yield row
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    if not names_model:
        async for row in _without_own_model(access.settings, client):
            yield row
    store_id, store_row = await _store(access)
    yield store_row
    try:
        async for row in server_rows(client, store_id):
            yield row
    except RPCError as error:
        yield CheckRow("problem", "server", f"it stopped answering: {error.message}")


async def _own_rows(settings: Settings, *, names_model: bool) -> AsyncIterator[CheckRow]:
    """Yields the rows without a server: settings, a named model, teams, keys."""
    for odd in odd_settings(settings, os.environ):
        yield CheckRow("warning", "settings", odd)
    if names_model:
        async for row in model_rows(settings):
            yield row
    async for row in _teams(settings):
        yield row
    if row_of_keys := open_keys(settings):
        yield row_of_keys


async def _store(access: Access) -> tuple[str | None, CheckRow]:
    """Returns the store's id and its row; the id is "" for a new store, None if it is away."""
    try:
        store = await access.store()
        store_id = await store.identity() or ""
    except (ArtifactUnavailable, ValueError) as error:
        url = access.settings.artifacts_url
        repair = f"make {url} a folder of yours"
        if "://" in url:
            repair = "create that bucket, check its credentials"
        fix = f"{repair}, or let SUPERVISOR_ARTIFACTS_URL name another one"
        return None, CheckRow("problem", "artifact store", str(error), fix)

    known = "without an id yet: the first run that uses it makes one"
    if store_id:
        known = f"id {store_id}"
    keys = access.settings.keys
    sealed = f", encrypted with key {keys.names[0]}" if keys else ""
    return store_id, CheckRow("ok", "artifact store", f"{store.url}, {known}{sealed}")


async def _without_own_model(settings: Settings, client: Client) -> AsyncIterator[CheckRow]:
    """Yields the Worker that makes model calls, or a warning if there is none."""
    calling = await read_pollers(client, MODEL_QUEUE)
    if calling.served:
        worker = workers_line(calling.workers)
        text = f"this environment names none and needs none: {worker} makes the calls"
        yield CheckRow("ok", "model", text)
        return
    async for row in model_rows(settings):
        yield row


def open_keys(settings: Settings) -> CheckRow | None:
    """Returns a warning about a key file that other users can read; None if none can.

    A container may mount it so.
    """
    file = settings.keys_file
    if file is None or not file.is_file() or not is_readable_by_others(file.stat()):
        return None
    text = f"other users of this machine can read {file}"
    return CheckRow("warning", "keys", text, f"`chmod 600 {file}`")


async def _teams(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields a row for each team with problems or with files that can't be read."""
    # loads the tools' libraries: 0.3 s
    from temporal_supervisor.console.commands.team_commands import teams_report

    report = await teams_report(settings)
    teams: Any = report.data
    is_right = True
    for team in teams:
        problems = [team["error"]] if team["error"] else team["unread"]
        if not problems:
            continue
        is_right = False
        text, *more = problems
        if more:
            text = f"{text.rstrip('.')}; and {counted(len(more), 'more file')}"
        fix = f"correct it; {hint('teams', team['name'])} says more"
        yield CheckRow("warning", f"team {team['name']}", text, fix)
    if is_right:
        names = ", ".join(team["name"] for team in teams)
        yield CheckRow("ok", "teams", f"{names}: their files can be read")


async def server_rows(client: Client, store_id: str | None) -> AsyncIterator[CheckRow]:
    """Yields the rows on the server. Raises RPCError if the server goes away.

    `store_id` is the id of this environment's store: empty if it has none, None if it can't be
    read.
    """
    request = GetSystemInfoRequest()
    info = await client.workflow_service.get_system_info(request, timeout=RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    async for row in queue_rows(client):
        yield row

    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        yield CheckRow("warning", "search attributes", warning, _WITHOUT_ATTRIBUTE)
    if not missing:
        yield CheckRow("ok", "search attributes", "all usable")

    if store_id is not None:
        other = await _other_workers_store(client, store_id) or await _other_store(client, store_id)
        if other:
            yield other
    async for row in _open_runs(client):
        yield row


async def queue_rows(client: Client) -> AsyncIterator[CheckRow]:
    """Yields a row for each queue, and for each build without a Worker."""
    seen = {queue: await read_pollers(client, queue) for queue in WORK}
    for queue, work in WORK.items():
        workers = seen[queue].workers
        if not all(has_ended_here(worker.identity) for worker in workers):
            yield CheckRow("ok", f"queue {queue}", f"{work} are served by {workers_line(workers)}")
            continue
        last = f", the last one was {workers_line(workers)}" if workers else ""
        _, options = worker_of(queue)
        fix = f"start one with {hint('worker', *options)}"
        # few teams have tools that go out
        level: Level = "warning" if queue == OUTWARD_QUEUE else "problem"
        yield CheckRow(level, f"queue {queue}", f"no Worker serves {work}{last}", fix)
    async for row in _build_rows(client, seen[WORKFLOW_QUEUE]):
        yield row


async def _build_rows(client: Client, seen: Polled) -> AsyncIterator[CheckRow]:
    """Yields the builds that runs wait for, and those with Workers.

    A run stays with the build that began it.
    """
    if seen.none_current:
        yield CheckRow("problem", "builds", seen.none_current, seen.set_current)
    request = DescribeWorkerDeploymentRequest(
        namespace=client.namespace,
        deployment_name=DEPLOYMENT,
    )
    service = client.workflow_service
    try:
        reply = await service.describe_worker_deployment(request, timeout=RPC_TIMEOUT)
    except RPCError:  # no Worker has named one, or the server has just been told of the first
        return

    info = reply.worker_deployment_info
    current_build = info.routing_config.current_deployment_version.build_id
    served = []
    for summary in info.version_summaries:  # the newest first
        build = summary.deployment_version.build_id
        is_current = build == current_build
        has_runs = summary.drainage_status == _HAS_RUNS
        if build in seen.served:
            current = " (current)" if is_current else ""
            draining = " (its runs may still be open)" if has_runs else ""
            served.append(f"{build}{current}{draining}")
        elif is_current or has_runs:
            waits = "new runs wait for it" if is_current else "runs that began with it are open"
            fix = f"start one with {hint('worker', SUPERVISOR_BUILD_ID=build)}"
            yield CheckRow("problem", f"build {build}", f"no Worker serves it: {waits}", fix)
    if served and not seen.none_current:
        yield CheckRow("ok", "builds", ", ".join(served))


def _own_store(store_id: str) -> str:
    """Returns the second half of a sentence on two different stores."""
    if not store_id:
        return "this environment one without an id: it is not mounted, or was emptied"
    return f"this environment the store {store_id}"


async def _other_workers_store(client: Client, store_id: str) -> CheckRow | None:
    """Returns a problem if a running Worker uses another artifact store."""
    worker, other = await worker_of_other_store(client, store_id)
    if not worker:
        return None
    text = f"the Worker {worker} uses the store {other}..., {_own_store(store_id)}"
    return CheckRow("problem", "artifact store", text, _SAME_STORE)


async def _other_store(client: Client, store_id: str) -> CheckRow | None:
    """Returns a problem if the newest run uses another artifact store, or ours is lost."""
    for execution in await list_roots(client, 1):
        used = await recorded_store(Run(client, execution.id))
        if used and used != store_id:
            text = f"run '{execution.id}' uses the store {used}, {_own_store(store_id)}"
            fix = f"mount that store again, or {_SAME_STORE}"
            return CheckRow("problem", "artifact store", text, fix)
    return None


async def _open_runs(client: Client) -> AsyncIterator[CheckRow]:
    """Yields a row for each open run that stands still, or a single row if none does."""
    roots = await list_roots(client, _RUNS, "Running")
    ours = [root for root in roots if root.task_queue == WORKFLOW_QUEUE]
    is_any_still = False
    for root in ours:
        run = Run(client, root.id)
        described = await run.describe()
        memo = await described.memo()
        updates = memo.get("updates")
        if updates:
            text = f"'{run.id}' has taken {updates} updates: the server allows 2,000"
            fix = (
                "the last ones are kept for resume and extend; "
                "decisions go as the signal `decide` then"
            )
            yield CheckRow("warning", "open run", text, fix)

        for cause in await causes_of(run, described):
            is_any_still = True
            fix = f"{cause.helps}; {hint('status', short_id(run.id))} says more"
            level: Level = "warning" if cause.waits_for == "person" else "problem"
            yield CheckRow(level, "open run", f"'{run.id}': {cause.cause}", fix)
    if not is_any_still:
        yield CheckRow("ok", "open runs", f"{counted(len(ours), 'open run')}, none stuck")
