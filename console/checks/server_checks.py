"""The rows of `doctor` that the Temporal server knows: queues, search attributes, open runs, their store."""

from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client

from console import console_limits
from console.access import server_address
from console.checks.check_row import CheckRow
from console.hints import hint, worker_hint
from console.run.find_run import roots
from console.run.pollers import ACTIVITIES, WORKFLOWS, limited, pollers, shown
from console.run.run_handle import RunHandle
from console.run.standstill import PROVIDER_HELPS, causes_of, unanswered
from console.terminal import counted, safe_line
from runtime import search_attributes
from supervision import limits
from supervision.queues import MODEL_QUEUE, TOOLS_QUEUE, WORKFLOW_QUEUE, pool_queue

_QUEUE_CHARS = 60  # of a queue's name, which may be anybody's


async def server_rows(client: Client, store_id: str | None, teams: list[Path]) -> AsyncIterator[CheckRow]:
    """Yields the rows; `store_id` is that of this environment's store. Raises RPCError if the server goes away."""
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=console_limits.RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    async for row in _queues(client, teams):
        yield row
    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        yield CheckRow("warning", "search attributes", warning, "runs go on without: their phase is in the memo")
    if not missing:
        yield CheckRow("ok", "search attributes", "all usable")
    if other := await _other_store(client, store_id):
        yield other
    if full := await _cached(client):
        yield full
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
    from activities.teams.team_mentions import named_pools  # loads the tools' libraries: 0.3 s for some commands only

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
    opened = (await client.count_workflows(query, rpc_timeout=console_limits.RPC_TIMEOUT)).count
    each = "which holds" if workers == 1 else "each of which holds"
    text = f"{opened:,} on {counted(workers, 'Worker')}, {each} {limits.CACHED_WORKFLOWS:,} of them in its cache"
    if opened < console_limits.CACHE_NEARLY_FULL * limits.CACHED_WORKFLOWS * workers:
        return CheckRow("ok", "open workflows", text)
    fix = f"start another Worker with {worker_hint()}: beyond the cache each task replays a whole history"
    return CheckRow("warning", "open workflows", text, fix)


async def _other_store(client: Client, store_id: str | None) -> CheckRow | None:
    """Returns a problem if the newest run uses another artifact store than this environment."""
    for execution in await roots(client, 1):
        used = await RunHandle(client, execution.id).recorded_store()
        if used and store_id and used != store_id:
            return CheckRow(
                "problem",
                "artifact store",
                f"run '{execution.id}' uses the store {used}, this environment another one",
                "set SUPERVISOR_ARTIFACTS_URL to the same store in every process",
            )
    return None


async def _open_runs(client: Client) -> AsyncIterator[CheckRow]:
    """Yields a row for each open run that stands still, and one that counts the others."""
    looked_at, still = 0, 0
    for execution in await roots(client, console_limits.DOCTOR_RUNS, "Running"):
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
