"""The commands `list` and `teams`: their tables."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from temporalio.client import Client, WorkflowExecution

from console.command import BAD_INPUT, DONE, FAILED, Access, CommandFailed
from console.hints import hint
from console.run.find_run import SEARCHED_RUNS, no_runs, roots, short_id
from console.run.run_handle import STATUS, RunHandle, facts, is_open, state_word
from console.run.standstill import Standstill, causes_of
from console.terminal import Report, indented, safe_line, wrapped
from console.view.answer_text import why_partial
from supervision.base import limits
from supervision.base.errors import ErrorKind
from supervision.base.text import did_you_mean, money

if TYPE_CHECKING:
    from supervision.contract.team import Team

_DESCRIBED_AT_ONCE = 16  # questions to the server at a time, while runs are listed
_CELL = 600
_ID_CHARS = 400  # the most that a run's id may have
_NO_NAME = "a folder's name must be lower-case letters, digits, hyphens or underscores, so rename it"
_STATES = {
    "running": "Running",
    "completed": "Completed",
    "failed": "Failed",
    "cancelled": "Canceled",
    "terminated": "Terminated",
    "timed out": "TimedOut",
}


async def list_report(access: Access, limit: int, state: str | None, team: str | None) -> Report:
    """Returns the newest runs with the facts that the server keeps; open ones with what they wait for."""
    if state is not None and state not in _STATES:
        guess = did_you_mean(state, list(_STATES))
        raise CommandFailed(BAD_INPUT, f"there is no state '{state}'{guess}: {', '.join(_STATES)}")
    client = await access.client()
    executions = await roots(client, SEARCHED_RUNS if team else limit, _STATES[state] if state else None)
    if team:
        executions = [e for e in executions if (await facts(e))[1] == team][:limit]
    looks = asyncio.Semaphore(_DESCRIBED_AT_ONCE)
    rows = await asyncio.gather(*(_row(client, execution, looks) for execution in executions))
    if rows:
        return Report(rows, lambda screen: run_table(rows, screen))
    none = f"there is no such run in namespace '{client.namespace}': {hint('list')} shows all"
    return Report([], lambda _: (), notes=[none if state or team else no_runs(client.namespace)])


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
    known = {
        "run_id": execution.id,
        "goal": goal,
        "state": state_word(execution),
        "status": status,
        "partial": partial or None,
    }
    return {
        **known,
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


async def teams_report(folders: list[Path], *, name: str | None = None, check: bool = False) -> Report:
    """Returns each team with its roles and tools, or one of them; the exit code is 1 if a team can't be used.

    The code of a team (`tools.py`) is run for a team that is named, and for all with `check`.
    """
    # these load the tools' libraries: 0.3 s for one command only
    from activities.teams.team_files import TeamError, TeamFiles
    from supervision.planning.team_hints import team_hints

    files = TeamFiles(folders)
    usable: list[Team] = []
    misnamed = [] if name else files.misnamed()
    broken = {folder.name: TeamError(ErrorKind.UNKNOWN_TEAM, f"{folder}: {_NO_NAME}") for folder in misnamed}
    names = [name] if name else files.names()
    unchecked = [] if name or check else [each for each in names if files.has_code(each)]
    for each in names:
        try:
            usable.append(files.definition(each) if each in unchecked else (await files.load(each)).team)
        except TeamError as error:
            broken[each] = error
    listed: list[dict[str, Any]] = [{**team.model_dump(mode="json"), "error": None} for team in usable]
    listed += [{"name": each, "error": safe_line(e.message, limits.ERROR_BYTES)} for each, e in broken.items()]
    notes = []
    for each, why in broken.items():
        lines = [f"{why.message.partition(': ')[0]}:", *why.problems] if len(why.problems) > 1 else [why.message]
        said = "\n  ".join(safe_line(line, limits.ERROR_BYTES) for line in lines)
        notes.append(f"team '{each}' can't be used: {said}")
    if unchecked:
        notes.append(f"tools.py is not run here: {hint('teams', '--check')} checks that of {', '.join(unchecked)}")
    rows = [row for team in usable for row in _team_rows(team, team_hints(team))]
    return Report(listed, lambda _: rows, notes, code=FAILED if broken else DONE)


def _team_rows(team: "Team", hints: list[str]) -> Iterator[RenderableType]:
    yield indented(f"{team.name}  {safe_line(team.description, _CELL)}".rstrip(), 0, "bold")
    for role in team.roles:
        mark = " (generalist)" if role.name == team.generalist else ""
        tools = f"team {role.team}" if role.team else ", ".join(role.tools) or "no tools"
        pool = f", pool {role.pool}" if role.pool else ""
        yield indented(f"{role.name}{mark}: {tools}{pool}", 2)
        yield indented(safe_line(role.description, _CELL), 6, "dim")
    for advice in hints:
        yield indented(f"hint: {safe_line(advice, limits.ERROR_BYTES)}", 2, "yellow")
