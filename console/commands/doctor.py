"""The command `doctor`: one row for each thing that a run needs, with the fix if something is wrong."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text
from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactUnavailable
from console import console_limits
from console.access import Access, endpoint, server_address
from console.run.retrying import retrying_calls
from console.run.run_handle import RUN_TYPE, stuck
from console.run.start_run import ACTIVITIES, WORKFLOWS, pollers
from console.terminal import safe_line
from runtime import search_attributes
from runtime.connection import ConnectionFailed
from runtime.paths import cache_dir
from runtime.settings import Settings
from supervision.errors import AWAITED
from supervision.queues import MODEL_QUEUE, TOOLS_QUEUE, WORKFLOW_QUEUE
from supervision.trust import is_readable_by_others

Level = Literal["ok", "warning", "problem"]
_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_START = "start one with `python worker_main.py`"


@dataclass(frozen=True)
class CheckRow:
    """The state of one thing that a run needs."""

    level: Level
    name: str
    text: str
    fix: str = ""


async def examine(access: Access, console: Console, quiet: bool) -> int:
    """Prints the rows, with `quiet` only warnings and problems. Returns 1 if there is a problem."""
    problems = 0
    async for row in _rows(access):
        problems += row.level == "problem"
        if row.level != "ok" or not quiet:
            table = Table.grid(padding=(0, 1))
            table.add_column(width=8)
            table.add_column(width=22)
            table.add_column(overflow="fold")
            table.add_row(Text(row.level, style=_STYLES[row.level]), row.name, Text(safe_line(row.text, 600)))
            if row.fix:
                table.add_row("", "", Text(safe_line(row.fix, 600), style="dim"))
            console.print(table)
    return 1 if problems else 0


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    yield _model(access.settings)
    yield _files()
    store_id = None
    try:
        store_id = await access.store.identity()
        yield CheckRow("ok", "artifact store", f"{access.store.url}, id {store_id}")
    except (ArtifactUnavailable, ValueError) as error:
        yield CheckRow("problem", "artifact store", str(error), "set SUPERVISOR_ARTIFACTS_URL")
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    try:
        async for row in _of_server(client, store_id):
            yield row
    except RPCError as error:
        yield CheckRow("problem", "server", f"it stopped answering: {error.message}")


def _model(settings: Settings) -> CheckRow:
    if settings.model == "standin":
        return CheckRow("warning", "model", "the stand-in model is chosen here: it extracts, it does not reason")
    if address := endpoint(settings):
        return CheckRow("ok", "model", f"this environment calls {address}")
    return CheckRow(
        "warning",
        "model",
        "this environment names no model, so workers started in it can't make model calls",
        "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where workers run",
    )


def _files() -> CheckRow:
    """Returns a row that warns if other users of this machine can read the cache folder."""
    folder = cache_dir()
    if is_readable_by_others(folder.stat()):
        return CheckRow(
            "warning", "cache folder", f"other users can look into {folder}", f"`chmod 700 {quote(str(folder))}`"
        )
    return CheckRow("ok", "cache folder", f"{folder}, yours alone")


async def _of_server(client: Client, store_id: str | None) -> AsyncIterator[CheckRow]:
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=console_limits.RPC_TIMEOUT)
    yield CheckRow("ok", "server", f"{server_address(client)}, version {info.server_version}")
    yield CheckRow("ok", "namespace", client.namespace)
    for queue, kind, work in ((WORKFLOW_QUEUE, WORKFLOWS, "runs"), (MODEL_QUEUE, ACTIVITIES, "model calls")):
        workers = await pollers(client, queue, kind)
        if workers:
            yield CheckRow("ok", f"queue {queue}", f"{work} are served by {_shown(workers)}")
        else:
            yield CheckRow("problem", f"queue {queue}", f"no worker serves {work}", _START)
    tools = await pollers(client, TOOLS_QUEUE, ACTIVITIES)
    yield CheckRow("ok", f"queue {TOOLS_QUEUE}", _shown(tools) or "no worker: only runs of split processes need one")
    missing = search_attributes.warnings(await search_attributes.usable(client))
    for warning in missing:
        yield CheckRow("warning", "search attributes", warning, "runs go on without: their phase is in the memo")
    if not missing:
        yield CheckRow("ok", "search attributes", "all usable")
    if row := await _other_store(client, store_id):
        yield row
    async for row in _stuck_runs(client):
        yield row


def _shown(workers: dict[str, datetime]) -> str:
    now = datetime.now(UTC)
    return ", ".join(f"{name} (polled {max(0, (now - at).seconds)} s ago)" for name, at in workers.items())


async def _other_store(client: Client, store_id: str | None) -> CheckRow | None:
    """Returns a problem if the newest run uses another artifact store than this environment."""
    async for execution in client.list_workflows(f"WorkflowType = '{RUN_TYPE}'", limit=1):
        used = await _store_of(client, execution.id)
        if used and store_id and used != store_id:
            return CheckRow(
                "problem",
                "artifact store",
                f"run '{execution.id}' uses the store {used}, this environment another one",
                "set SUPERVISOR_ARTIFACTS_URL to the same store in every process",
            )
    return None


async def _store_of(client: Client, run_id: str) -> str | None:
    """Returns the id of the store that a run recorded in its activities' inputs."""
    seen = 0
    async for event in client.get_workflow_handle(run_id).fetch_history_events(page_size=console_limits.DOCTOR_EVENTS):
        seen += 1
        payloads = event.activity_task_scheduled_event_attributes.input.payloads
        if payloads:
            return await _named_store(client, payloads)
        if seen >= console_limits.DOCTOR_EVENTS:
            break
    return None


async def _named_store(client: Client, payloads: Sequence[Payload]) -> str | None:
    """The store that an activity's input names; None for an input that can't be read, as anybody's may be."""
    try:
        values = await client.data_converter.decode(payloads)
    except Exception:  # converters raise whatever they like
        return None
    run = values[0].get("run") if values and isinstance(values[0], dict) else None
    return str(run["store_id"]) if isinstance(run, dict) and "store_id" in run else None


async def _stuck_runs(client: Client) -> AsyncIterator[CheckRow]:
    looked_at, stuck_ones = 0, 0
    query = f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'"
    async for execution in client.list_workflows(query, limit=console_limits.DOCTOR_RUNS):
        looked_at += 1
        described = await client.get_workflow_handle(execution.id).describe(rpc_timeout=console_limits.RPC_TIMEOUT)
        if why := stuck(described):
            stuck_ones += 1
            yield CheckRow(
                "problem", "open run", f"'{execution.id}': {why}", f"`temporal workflow show -w {quote(execution.id)}`"
            )
        for call in (await retrying_calls(client, execution.id))[: console_limits.SHOWN_RETRYING]:
            level: Level = "warning"
            if call.kind in AWAITED:
                level, stuck_ones = "problem", stuck_ones + 1
            yield CheckRow(level, "open run", call.sentence(), f"`python starter.py status {execution.id}`")
    if not stuck_ones:
        yield CheckRow("ok", "open runs", f"{looked_at}, none of them stuck")
