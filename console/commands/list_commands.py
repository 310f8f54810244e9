"""The commands `list` and `teams`: their tables."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from temporalio.client import Client, WorkflowExecution

from console import console_limits
from console.access import Access
from console.command import BAD_INPUT, CommandFailed
from console.hints import hint
from console.run.find_run import no_runs, roots, short_id
from console.run.run_handle import RunHandle, facts, is_open, state_word
from console.run.standstill import Standstill, causes_of
from console.terminal import print_err, print_json, safe_line, wrapped
from supervision import limits
from supervision.errors import ErrorKind
from supervision.text import did_you_mean, money

if TYPE_CHECKING:
    from supervision.contract.team import Team

_CELL = 600
_NO_NAME = "a folder's name must be lower-case letters, digits, hyphens or underscores, so rename it"
_STATES = {
    "running": "Running",
    "completed": "Completed",
    "failed": "Failed",
    "cancelled": "Canceled",
    "terminated": "Terminated",
    "timed out": "TimedOut",
}


@dataclass(frozen=True)
class ListOptions:
    """The options of `list`; None is "any"."""

    limit: int
    state: str | None = None
    team: str | None = None
    as_json: bool = False


@dataclass(frozen=True)
class ListedRun:
    """A row of `list`."""

    id: str
    goal: str
    state: str
    phase: str
    team: str
    started_at: str
    started: str
    usd: float | None
    standstills: list[Standstill]

    def as_json(self) -> dict[str, JsonValue]:
        """Returns it for programs."""
        return {
            **{"run_id": self.id, "goal": self.goal, "state": self.state, "phase": self.phase, "team": self.team},
            **{"started_at": self.started_at, "usd": self.usd},
            "standstills": [cause.as_json() for cause in self.standstills],
        }


async def print_runs(access: Access, console: Console, options: ListOptions) -> int:
    """Prints the newest runs with the facts that the server keeps; below an open one what it stands still for.

    On a terminal an id is short: its last word, which every command takes; elsewhere it is whole.
    """
    if options.state is not None and options.state not in _STATES:
        hint_text = did_you_mean(options.state, list(_STATES))
        raise CommandFailed(BAD_INPUT, f"there is no state '{options.state}'{hint_text}: {', '.join(_STATES)}")
    client = await access.client()
    state = _STATES[options.state] if options.state else None
    executions = await roots(client, console_limits.SEARCHED_RUNS if options.team else options.limit, state)
    if options.team:
        executions = [e for e in executions if (await facts(e))[1] == options.team][: options.limit]
    looks = asyncio.Semaphore(console_limits.DESCRIBED_AT_ONCE)
    rows = await asyncio.gather(*(_row(client, execution, looks) for execution in executions))
    if options.as_json:
        print_json([row.as_json() for row in rows])
    elif not rows and (options.state or options.team):
        print_err(f"there is no such run in namespace '{client.namespace}': {hint('list')} shows all")
    elif not rows:
        print_err(no_runs(client.namespace))
    else:
        _print_table(rows, console)
    return 0


async def _row(client: Client, execution: WorkflowExecution, looks: asyncio.Semaphore) -> ListedRun:
    phase, team, usd = await facts(execution)
    goal, causes = "", []
    async with looks:
        try:
            run = RunHandle(client, execution.id)
            described = await run.describe()
            # the Web UI's form for a start copies the summary of another run
            goal = await run.recorded_goal() or await described.static_summary() or ""
            if is_open(described):
                causes = await causes_of(run, described)
        except Exception:  # anybody may start a run with an unreadable summary, and it may be deleted meanwhile
            pass
    started = execution.start_time
    state = state_word(execution)
    return ListedRun(
        execution.id, goal, state, phase, team, started.isoformat(), f"{started.astimezone():%m-%d %H:%M}", usd, causes
    )


def _print_table(rows: list[ListedRun], console: Console) -> None:
    short = console.is_terminal
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", expand=short)
    for name in ("state", "started", "cost", "team"):
        table.add_column(name, no_wrap=True)
    table.add_column("run", no_wrap=not short, overflow="fold")
    table.add_column("goal", no_wrap=True, overflow="ellipsis", ratio=1 if short else None)
    for row in rows:
        state = f"{row.state}, {row.phase}" if row.state == "running" and row.phase else row.state
        cost = "" if row.usd is None else money(row.usd)
        name = short_id(row.id) if short else row.id
        cells = [state, row.started, cost, row.team, name, row.goal]
        table.add_row(*[Text(safe_line(cell, console_limits.RUN_ID_BYTES)) for cell in cells])
    if not short:
        console.width = sum(console_limits.RUN_ID_BYTES for _ in table.columns)  # nothing is cut for a pipe
    console.print(table)
    for row in rows:
        for cause in row.standstills:
            for line in wrapped(f"⏸ {short_id(row.id)}: {cause.line}", console.width, "yellow"):
                console.print(line, soft_wrap=True)


async def print_teams(
    folders: list[Path], console: Console, as_json: bool, *, name: str | None = None, check: bool = False
) -> int:
    """Prints each team with its roles and tools, or one of them. Returns 1 if a team can't be used, and prints why.

    A team's `tools.py` is code: it is run, as a Worker does it, for a team that is named and to `check` all.
    """
    # these load the tools' libraries: 0.3 s for one command only
    from activities.teams.team_definition import TeamError
    from activities.teams.team_files import TeamFiles
    from supervision.planning.team_hints import team_hints

    files = TeamFiles(folders)
    usable: list[Team] = []
    misnamed = [] if name else files.misnamed()
    broken = {folder.name: TeamError(ErrorKind.UNKNOWN_TEAM, f"{folder}: {_NO_NAME}") for folder in misnamed}
    names = [name] if name else files.names()
    unchecked = [] if name or check else [each for each in names if files.has_code(each)]
    await files.read(*(each for each in names if each not in unchecked))
    for each in names:
        try:
            usable.append(files.definition(each) if each in unchecked else files.load(each).team)
        except TeamError as error:
            broken[each] = error
    if as_json:
        listed: list[JsonValue] = [{**team.model_dump(mode="json"), "error": None} for team in usable]
        listed += [{"name": each, "error": safe_line(e.message, limits.ERROR_BYTES)} for each, e in broken.items()]
        print_json(listed)
        return 1 if broken else 0
    for team in usable:
        _print_team(team, team_hints(team), console)
    for each, why in broken.items():
        file, _, _ = why.message.partition(": ")
        lines = [f"{file}:", *why.problems] if len(why.problems) > 1 else [why.message]
        said = "\n  ".join(safe_line(line, limits.ERROR_BYTES) for line in lines)
        print_err(f"team '{each}' can't be used: {said}")
    if unchecked:
        print_err(f"tools.py is not run here: {hint('teams', '--check')} checks that of {', '.join(unchecked)}")
    return 1 if broken else 0


def _print_team(team: "Team", hints: list[str], console: Console) -> None:
    console.print(Text(f"{team.name}  {safe_line(team.description, _CELL)}".rstrip(), style="bold"))
    for role in team.roles:
        mark = " (generalist)" if role.name == team.generalist else ""
        tools = f"team {role.team}" if role.team else ", ".join(role.tools) or "no tools"
        pool = f", pool {role.pool}" if role.pool else ""
        console.print(Padding(Text(f"{role.name}{mark}: {tools}{pool}"), (0, 0, 0, 2), expand=False))
        console.print(Padding(Text(safe_line(role.description, _CELL), style="dim"), (0, 0, 0, 6), expand=False))
    for advice in hints:
        console.print(Padding(Text(f"hint: {safe_line(advice, limits.ERROR_BYTES)}", style="yellow"), (0, 0, 0, 2)))
