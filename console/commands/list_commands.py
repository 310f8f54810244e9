"""The commands `list` and `spend`: their tables."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from temporalio.client import Client, WorkflowExecution

from activities.store.spending import RunSpend, run_spends
from console.base.command import BAD_INPUT, Access, CommandFailed, hint
from console.base.terminal import Report, safe_line, wrapped
from console.run.run_handle import (
    SEARCHED_RUNS,
    STATUS,
    RunHandle,
    facts,
    is_open,
    no_runs,
    roots,
    short_id,
    state_word,
)
from console.run.standstill import Standstill, causes_of
from console.view.answer_text import why_partial
from supervision.base.text import did_you_mean, money
from supervision.contract.usage import Usage
from temporal_supervisor import OWNER, inbox

_DESCRIBED_AT_ONCE = 16  # questions to the server at a time, while runs are listed
SpendBy = Literal["owner", "day", "team", "model"]
_ID_CHARS = 400  # the most that a run's id may have
_STATES = {
    "running": "Running",
    "completed": "Completed",
    "failed": "Failed",
    "cancelled": "Canceled",
    "terminated": "Terminated",
    "timed out": "TimedOut",
}


async def list_report(
    access: Access,
    limit: Annotated[int, typer.Option(min=1, help="newest first")] = 50,
    state: Annotated[str | None, typer.Option(help="only running, completed, failed, cancelled, ... ones")] = None,
    team: Annotated[str | None, typer.Option(help="only those of this team")] = None,
    owner: Annotated[str | None, typer.Option(help="only those of this owner, of the request's metadata")] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="only those that wait for a person")] = False,
) -> Report:
    """List the runs that the server knows."""
    if state is not None and state not in _STATES:
        guess = did_you_mean(state, list(_STATES))
        raise CommandFailed(BAD_INPUT, f"there is no state '{state}'{guess}: {', '.join(_STATES)}")
    client = await access.client()
    selects = bool(team or owner or waiting)
    executions = await roots(client, SEARCHED_RUNS if selects else limit, _STATES[state] if state else None)
    found = await inbox(client) if waiting else None
    ids = {*found.unanswered, *(item.run_id for item in found.items)} if found else set()
    executions = [
        execution
        for execution in executions
        if (not team or (await facts(execution))[1] == team)
        and (not owner or execution.typed_search_attributes.get(OWNER) == owner)
        and (found is None or execution.id in ids)
    ][:limit]
    looks = asyncio.Semaphore(_DESCRIBED_AT_ONCE)
    rows = await asyncio.gather(*(_row(client, execution, looks) for execution in executions))
    if rows:
        return Report(rows, lambda screen: run_table(rows, screen))
    none = f"there is no such run in namespace '{client.namespace}': {hint('list')} shows all"
    return Report([], lambda _: (), notes=[none if state or selects else no_runs(client.namespace)])


async def _row(client: Client, execution: WorkflowExecution, looks: asyncio.Semaphore) -> dict[str, Any]:
    phase, team, usd = await facts(execution)
    goal, partial = "", ""
    status = execution.typed_search_attributes.get(STATUS)
    causes: list[Standstill] = []
    async with looks:
        try:
            run = RunHandle(client, execution.id)
            described = await run.describe()
            # the Web UI's form for a start copies the summary of another run
            goal = await run.recorded_goal() or await described.static_summary() or ""
            if is_open(described):
                causes = await causes_of(run, described)
            elif status == "partial" and state_word(described) == "completed":
                partial = why_partial(await run.handle.result())
        except Exception:  # any client may have written the summary, and the run may be deleted meanwhile
            pass
    return {
        "run_id": execution.id,
        "goal": goal,
        "state": state_word(execution),
        "status": status,
        "partial": partial or None,
        "phase": phase,
        "team": team,
        "started_at": execution.start_time.isoformat(),
        "usd": usd,
        "standstills": causes,
    }


def run_table(rows: Iterable[dict[str, Any]], screen: Console) -> Iterator[RenderableType]:
    """Yields the table of runs, and below it what open ones wait for."""
    short = screen.is_terminal
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", expand=short)
    for name in ("state", "started", "cost", "team"):
        table.add_column(name, no_wrap=True)
    table.add_column("run", no_wrap=not short, overflow="fold")
    table.add_column("goal", no_wrap=True, overflow="ellipsis", ratio=1 if short else None)
    for row in rows:
        state = f"{row['state']}, {row['phase']}" if row["state"] == "running" and row["phase"] else row["state"]
        state = "partial" if row["status"] == "partial" else state
        cost = "" if row["usd"] is None else money(row["usd"])
        name = short_id(row["run_id"]) if short else row["run_id"]
        started = datetime.fromisoformat(row["started_at"]).astimezone()
        cells = [state, f"{started:%m-%d %H:%M}", cost, row["team"], name, row["goal"]]
        table.add_row(*[Text(safe_line(cell, _ID_CHARS)) for cell in cells])
    if not short:
        screen.width = sum(_ID_CHARS for _ in table.columns)  # nothing is cut for a pipe
    yield table
    for row in rows:
        for cause in row["standstills"]:
            yield from wrapped(f"⏸ {short_id(row['run_id'])}: {cause.line}", screen.width, "yellow")
    for row in rows:
        if row["partial"]:
            why = Text(f"◐ {short_id(row['run_id'])}: {row['partial']}", style="dim")
            why.truncate(screen.width, overflow="ellipsis")
            yield why


async def spend_report(
    access: Access, days: Annotated[int, typer.Option(min=1, max=3650)] = 30, by: SpendBy = "day"
) -> Report:
    """Show what ended runs have cost: dollars, tokens, runs."""
    today = datetime.now(UTC).date()
    spent = await run_spends(await access.store(), days, today)
    sums: dict[str, tuple[int, Usage]] = {}
    for run in spent:
        for name, usage in _parts(run, by).items():
            runs, sum_ = sums.get(name, (0, Usage()))
            sums[name] = runs + 1, sum_ + usage
    names = sorted(sums, key=lambda name: name if by == "day" else (-(sums[name][1].usd or 0.0), name))
    rows = [(name, *sums[name]) for name in names]
    data = [{by: name, "runs": runs, "tokens": usage.tokens, "usd": usage.usd} for name, runs, usage in rows]
    total = sum((run.usage for run in spent), Usage())

    def screen(_: Console) -> Iterator[Table]:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column(by)
        for name in ("runs", "tokens", "cost"):
            table.add_column(name, justify="right")
        for name, runs, usage in [*rows, ("all", len(spent), total)]:
            cells = [safe_line(name, _ID_CHARS) or "-", str(runs), f"{usage.tokens:,}", money(usage.usd)]
            table.add_row(*map(Text, cells))
        yield table

    none = [] if spent else [f"no run of this namespace ended in the last {days} days"]
    return Report(data, screen if spent else lambda _: (), notes=none)


def _parts(run: RunSpend, by: SpendBy) -> dict[str, Usage]:
    """Returns what a run has cost by the names that it counts for."""
    if by != "model":
        return {{"owner": run.owner, "day": f"{run.ended_at:%Y-%m-%d}", "team": run.team}[by]: run.usage}
    parts: dict[str, Usage] = {}
    for row in run.spend:
        parts[row.model] = parts.get(row.model, Usage()) + row.usage
    return parts
