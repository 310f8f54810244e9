"""The command `doctor`: one row for each thing that a run needs, with the fix if something is wrong."""

import asyncio
import http.client
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from rich.text import Text
from temporalio.api.enums.v1 import VersionDrainageStatus
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.run.notices import UNREDIRECTED
from activities.store.artifacts import ArtifactUnavailable
from console.base.command import DONE, FAILED, Access, endpoint, hint, server_address
from console.base.terminal import Report, counted, safe_line, wrapped
from console.run.pollers import SET_CURRENT, WORK, Polled, gone, polled, shown, worker_of
from console.run.run_handle import RPC_TIMEOUT, RunHandle, roots
from console.run.standstill import causes_of
from runtime import search_attributes
from runtime.connection import ConnectionFailed
from runtime.settings import Settings
from supervision.base.queues import DEPLOYMENT, OUTWARD_QUEUE, WORKFLOW_QUEUE
from supervision.base.trust import is_exposed

Level = Literal["ok", "warning", "problem"]
_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAME_COLUMN, _NAME_CHARS = 9, 24  # where the names begin, and how long they are
_RUNS = 100  # open ones that are looked at, newest first
_PROVIDER = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
_TIMEOUT = timedelta(seconds=3)  # a provider's list of models comes in well under a second
_STANDIN = "the stand-in model, which extracts and does not reason"


@dataclass(frozen=True)
class CheckRow:
    """The state of one thing that a run needs."""

    level: Level
    name: str
    text: str
    fix: str = ""


async def examine(access: Access) -> Report:
    """Check everything that a run needs; exit code 1 if there is a problem."""
    rows = [row async for row in _rows(access)]
    code = FAILED if any(row.level == "problem" for row in rows) else DONE
    return Report(rows, lambda screen: [text for row in rows for text in row_texts(row, screen.width)], code=code)


def row_texts(row: CheckRow, width: int) -> Iterator[Text]:
    """Yields a row as lines in columns, which are left for a command that is too long for the last one."""
    begins = Text.assemble((f"{row.level:<{_NAME_COLUMN}}", _STYLES[row.level]), row.name.ljust(_NAME_CHARS), " ")
    room = width - len(begins)
    for text in [*wrapped(row.text, room, ""), *wrapped(row.fix, room, "dim")]:
        yield Text.assemble(begins, text) if text.cell_len <= room else text
        begins = Text(" " * len(begins))


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    yield await _model(access.settings)
    async for row in _teams(access.settings):
        yield row
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    store_id = None
    try:
        store = await access.store()
        store_id = await store.identity()
        keys = access.settings.keys
        sealed = f", encrypted with key {keys.names[0]}" if keys else ""
        yield CheckRow("ok", "artifact store", f"{store.url}, id {store_id}{sealed}")
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


async def _teams(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields a row for each team that can't be used or has such files."""
    from console.commands.team_commands import teams_report  # loads the tools' libraries: 0.3 s

    checked: Any = (await teams_report(settings)).data
    wrong = {team["name"]: [team["error"]] if team["error"] else team["unread"] for team in checked}
    for name, (problem, *more) in ((name, problems) for name, problems in wrong.items() if problems):
        text = f"{problem.rstrip('.')}; and {counted(len(more), 'more file')}" if more else problem
        yield CheckRow("warning", f"team {name}", text, f"correct it; {hint('teams', name)} says more")
    if not any(wrong.values()):
        yield CheckRow("ok", "teams", f"{', '.join(wrong)}: their files can be read")


async def server_rows(client: Client, store_id: str | None) -> AsyncIterator[CheckRow]:
    """Yields the rows; `store_id` is that of this environment's store. Raises RPCError if the server goes away."""
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    async for row in queue_rows(client):
        yield row
    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        yield CheckRow("warning", "search attributes", warning, "runs work without: their phase is in the memo")
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
    """Returns a problem if the newest run uses another artifact store than this environment."""
    for execution in await roots(client, 1):
        used = await RunHandle(client, execution.id).recorded_store()
        if used and store_id and used != store_id:
            text = f"run '{execution.id}' uses the store {used}, this environment another one"
            fix = "set SUPERVISOR_ARTIFACTS_URL to the same store in every process"
            return CheckRow("problem", "artifact store", text, fix)
    return None


async def _open_runs(client: Client) -> AsyncIterator[CheckRow]:
    """Yields a row for each open run of our queue that stands still, or one that says that none does."""
    found = [each.id for each in await roots(client, _RUNS, "Running") if each.task_queue == WORKFLOW_QUEUE]
    still = 0
    for run in (RunHandle(client, run_id) for run_id in found):
        causes = await causes_of(run, await run.describe())
        still += bool(causes)
        for cause in causes:
            fix = f"{cause.helps}; {hint('status', run.id)} says more"
            level: Level = "warning" if cause.waits_for == "person" else "problem"
            yield CheckRow(level, "open run", f"'{run.id}': {cause.cause}", fix)
    if not still:
        yield CheckRow("ok", "open runs", f"{len(found)}, none of them stands still")


async def _model(settings: Settings) -> CheckRow:
    address = endpoint(settings)
    if address is None:
        text = "this environment names no model, so Workers started in it can't make model calls"
        fix = "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where Workers run"
        return CheckRow("warning", "model", text, fix)
    name = f"{_STANDIN}, at {address}" if settings.model == "standin" else address
    try:
        status = await asyncio.to_thread(_status, settings)
    except (OSError, http.client.HTTPException, ValueError) as error:
        fix = "start it, or correct ANTHROPIC_BASE_URL" if settings.anthropic_base_url else "check the network"
        return CheckRow(
            "problem", "model", f"{name} can't be reached: {safe_line(str(getattr(error, 'reason', error)), 200)}", fix
        )
    if status in (401, 403):
        fix = "check ANTHROPIC_API_KEY and what the key may do, here and where Workers run"
        return CheckRow("problem", "model", f"{name}: it refuses the credential ({status})", fix)
    if status >= 500:
        return CheckRow("warning", "model", f"{name}: it answers with {status}", "runs wait until it answers")
    return CheckRow("warning" if settings.model == "standin" else "ok", "model", f"{name} answers, as seen from here")


def _status(settings: Settings) -> int:
    """Returns the status with which the endpoint answers a request for its list of models."""
    base = (settings.anthropic_base_url or _PROVIDER).rstrip("/")
    request = urllib.request.Request(f"{base}/v1/models?limit=1", headers={"anthropic-version": _API_VERSION})
    if settings.model != "standin" and (settings.model_plain_http or not is_exposed(base)):
        if key := settings.secret("anthropic_api_key"):
            request.add_header("x-api-key", key)
        elif token := settings.secret("anthropic_auth_token"):
            request.add_header("authorization", f"Bearer {token}")
    try:
        with UNREDIRECTED.open(request, timeout=_TIMEOUT.total_seconds()) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as answer:
        return answer.code
