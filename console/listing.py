"""The tables of `list` and `teams`."""

from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from console.access import Access
from console.runs import RUN_TYPE, facts, state_word
from console.safe_text import safe_line
from console.terminal import say
from supervision.details import money

_CELL = 300


async def print_runs(access: Access, console: Console, limit: int) -> int:
    """The newest runs, with what the server keeps of them."""
    client = await access.client()
    table = _table("run", "state", "phase", "team", "started", "cost")
    async for execution in client.list_workflows(f"WorkflowType = '{RUN_TYPE}'", limit=limit):
        if execution.parent_id is None:
            phase, team, usd = await facts(execution)
            cost = "" if usd is None else money(usd)
            _row(table, execution.id, state_word(execution), phase, team, _local(execution.start_time), cost)
    if table.row_count == 0:
        say(f"no runs in namespace '{client.namespace}': start one with `python starter.py run \"...\"`")
    else:
        console.print(table)
    return 0


async def print_teams(folders: list[Path], console: Console) -> int:
    """Each team with its roles and tools; a broken one with the reason."""
    from activities.team_files import TeamError, TeamFiles  # loads the tools' libraries: 0.3 s for one command only

    files = TeamFiles(folders)
    table = _table("team", "role", "tools", "what it does")
    broken = []
    for name in files.names():
        try:
            team = files.load(name).team
        except TeamError as error:
            broken.append(f"team '{name}' can't be used: {error.message}")
            continue
        for role in team.roles:
            shown = f"{role.name} (generalist)" if role.name == team.generalist else role.name
            _row(table, team.name, shown, ", ".join(role.tools), role.description)
    console.print(table)
    for reason in broken:
        say(safe_line(reason, 1000))
    return 1 if broken else 0


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, name in enumerate(names):
        table.add_column(name, overflow="fold" if index == 0 else "ellipsis", no_wrap=index > 0 and name != names[-1])
    return table


def _row(table: Table, *cells: str) -> None:
    table.add_row(*[Text(safe_line(cell, _CELL)) for cell in cells])


def _local(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
