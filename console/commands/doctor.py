"""The command `doctor`: one row for each thing that a run needs, with the fix if something is wrong."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from shlex import quote

from rich.text import Text
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactUnavailable
from console.command import DONE, FAILED, Access, server_address
from console.commands.model_check import CheckRow, Level, model_rows
from console.hints import hint, worker_hint
from console.run.find_run import roots
from console.run.pollers import ACTIVITIES, WORKFLOWS, limited, pollers, shown
from console.run.run_handle import RPC_TIMEOUT, RunHandle
from console.run.standstill import PROVIDER_HELPS, causes_of, unanswered
from console.terminal import Report, console, counted, put, safe_line, wrapped
from runtime import search_attributes
from runtime.connection import ConnectionFailed
from runtime.paths import cache_dir
from supervision.base import limits
from supervision.base.queues import MODEL_QUEUE, TOOLS_QUEUE, WORKFLOW_QUEUE, pool_queue
from supervision.base.trust import is_readable_by_others

_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAME_COLUMN, _TEXT_COLUMN = 9, 32  # where the names begin, and the texts
_QUEUE_CHARS = 60  # of a queue's name, which may be anybody's
_RUNS = 100  # open ones that are looked at, newest first
_NEARLY_FULL = 0.8  # of the workflows that Workers hold: time to start another one


async def examine(access: Access, *, quiet: bool, as_json: bool) -> Report:
    """Shows each row as it is known, with `quiet` only warnings and problems. Exit code 1 means a problem."""
    rows = []
    screen = console()
    async for row in _rows(access):
        if row.level != "ok" or not quiet:
            rows.append(row)
            put(screen, () if as_json else row_texts(row, screen.width))
    return Report(rows, lambda _: (), code=FAILED if any(row.level == "problem" for row in rows) else DONE)


def row_texts(row: CheckRow, width: int) -> Iterator[Text]:
    """Yields a row as lines in columns, which are left for a command that is too long for the last one."""
    room = width - _TEXT_COLUMN
    begins = Text.assemble((f"{row.level:<{_NAME_COLUMN}}", _STYLES[row.level]), row.name)
    begins.pad_right(max(1, _TEXT_COLUMN - begins.cell_len))
    for text in [*wrapped(row.text, room, ""), *wrapped(row.fix, room, "dim")]:
        further_left = max(0, width - text.cell_len)  # a long command
        begins.truncate(min(_TEXT_COLUMN, further_left) if not begins.plain.strip() else _TEXT_COLUMN)
        yield Text.assemble(begins, text)
        begins = Text(" " * _TEXT_COLUMN)


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    async for row in model_rows(access.settings):
        yield row
    yield _files()
    store_id = None
    try:
        store_id = await access.store.identity()
        yield CheckRow("ok", "artifact store", f"{access.store.url}, id {store_id}")
    except (ArtifactUnavailable, ValueError) as error:
        url = access.settings.artifacts_url
        fix = "create that bucket, check its credentials," if "://" in url else f"make {url} a folder of yours,"
        text = f"{fix} or let SUPERVISOR_ARTIFACTS_URL name another one"
        yield CheckRow("problem", "artifact store", str(error), text)
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    try:
        async for row in server_rows(client, store_id, access.settings.teams_folders):
            yield row
    except RPCError as error:
        yield CheckRow("problem", "server", f"it stopped answering: {error.message}")


def _files() -> CheckRow:
    """Returns a row that warns if other users of this machine can read the cache folder."""
    folder = cache_dir()
    if is_readable_by_others(folder.stat()):
        text, fix = f"other users can look into {folder}", f"`chmod 700 {quote(str(folder))}`"
        return CheckRow("warning", "cache folder", text, fix)
    return CheckRow("ok", "cache folder", f"{folder}, yours alone")


async def server_rows(client: Client, store_id: str | None, teams: list[Path]) -> AsyncIterator[CheckRow]:
    """Yields the rows; `store_id` is that of this environment's store. Raises RPCError if the server goes away."""
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    async for row in _queues(client, teams):
        yield row
    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        yield CheckRow("warning", "search attributes", warning, "runs go on without: their phase is in the memo")
    if not missing:
        yield CheckRow("ok", "search attributes", "all usable")
    for found in (await _other_store(client, store_id), await _cached(client)):
        if found:
            yield found
    async for row in _open_runs(client):
        yield row


async def _queues(client: Client, teams: list[Path]) -> AsyncIterator[CheckRow]:
    for queue, kind, work in ((WORKFLOW_QUEUE, WORKFLOWS, "runs"), (MODEL_QUEUE, ACTIVITIES, "model calls")):
        workers = await pollers(client, queue, kind)
        if workers:
            yield CheckRow("ok", f"queue {queue}", f"{work} are served by {shown(workers)}")
        else:
            fix = f"start one with {worker_hint()}"
            yield CheckRow("problem", f"queue {queue}", f"no Worker serves {work}", fix)
    if why := await limited(client, MODEL_QUEUE):
        yield CheckRow("ok", "rate of model calls", why)
    tools = await pollers(client, TOOLS_QUEUE, ACTIVITIES)
    yield CheckRow("ok", f"queue {TOOLS_QUEUE}", shown(tools) or "no Worker: only runs of split processes need one")
    from activities.teams.team_files import named_pools  # loads the tools' libraries: 0.3 s for some commands only

    for pool, users in named_pools(teams).items():
        workers = await pollers(client, pool_queue(pool), ACTIVITIES)
        if workers:
            rate = await limited(client, pool_queue(pool))
            yield CheckRow("ok", f"pool {pool}", f"served by {shown(workers)}" + (f"; {rate}" if rate else ""))
        else:
            fix = f"start one with {worker_hint('--pool', pool)}"
            yield CheckRow("warning", f"pool {pool}", f"no Worker, and {', '.join(users)} needs one", fix)


async def _cached(client: Client) -> CheckRow | None:
    """Returns how many open workflows there are for each Worker: beyond its cache each task replays a history."""
    workers = len(await pollers(client, WORKFLOW_QUEUE, WORKFLOWS))
    if not workers:
        return None
    query = f"TaskQueue = '{WORKFLOW_QUEUE}' AND ExecutionStatus = 'Running'"
    opened = (await client.count_workflows(query, rpc_timeout=RPC_TIMEOUT)).count
    each = "which holds" if workers == 1 else "each of which holds"
    text = f"{opened:,} on {counted(workers, 'Worker')}, {each} {limits.CACHED_WORKFLOWS:,} of them in its cache"
    if opened < _NEARLY_FULL * limits.CACHED_WORKFLOWS * workers:
        return CheckRow("ok", "open workflows", text)
    fix = f"start another Worker with {worker_hint()}: beyond the cache each task replays a whole history"
    return CheckRow("warning", "open workflows", text, fix)


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
    """Yields a row for each open run that stands still, and one that counts the others."""
    looked_at, still = 0, 0
    for execution in await roots(client, _RUNS, "Running"):
        run = RunHandle(client, execution.id)
        if execution.task_queue != WORKFLOW_QUEUE:
            text = f"'{run.id}' is on queue '{safe_line(execution.task_queue, _QUEUE_CHARS)}', which is not ours"
            yield CheckRow("ok", "open run", text)
            continue
        looked_at += 1
        causes = await causes_of(run, await run.describe())
        still += bool(causes)
        for cause in causes:
            helps = PROVIDER_HELPS if cause.helps == unanswered() else cause.helps  # the first row says if it does
            fix = f"{helps}; {hint('status', run.id)} says more"
            yield CheckRow("problem", "open run", f"'{run.id}': {cause.cause}", fix)
    if not still:
        yield CheckRow("ok", "open runs", f"{looked_at}, none of them stands still")
