"""The commands `list` and `teams`: their tables."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from console import console_limits
from console.access import Access
from console.run.run_handle import RUN_TYPE, facts, state_word
from console.terminal import print_err, safe_line
from supervision import limits
from supervision.text import money

_CELL = 600
_ANY_WIDTH = 1000  # a long id runs over the edge of the terminal instead of being cut


async def print_runs(access: Access, console: Console, limit: int) -> int:
    """Prints the newest runs with the facts that the server keeps; the id comes last, whole, to be copied."""
    client = await access.client()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("state", "phase", "team", "started", "cost", "run"):
        table.add_column(name, no_wrap=True)
    async for execution in client.list_workflows(f"WorkflowType = '{RUN_TYPE}'", limit=limit):
        if execution.parent_id is None:
            phase, team, usd = await facts(execution)
            started = f"{execution.start_time.astimezone():%Y-%m-%d %H:%M}"
            cells = [state_word(execution), phase, team, started, "" if usd is None else money(usd), execution.id]
            table.add_row(*[Text(safe_line(cell, console_limits.RUN_ID_BYTES)) for cell in cells])
    if table.row_count == 0:
        print_err(f"no runs in namespace '{client.namespace}': start one with `python starter.py run \"...\"`")
    else:
        console.width = _ANY_WIDTH
        console.print(table)
    return 0


async def print_teams(folders: list[Path], console: Console) -> int:
    """Prints each team with its roles and tools. Returns 1 if a team can't be used; the reason is printed.

    Reads the team files alone: no code of a team is run, so its own tools are listed unseen.
    """
    # these load the tools' libraries: 0.3 s for one command only
    from activities.teams.team_definition import TeamError
    from activities.teams.team_files import TeamFiles
    from supervision.planning.team_hints import team_hints

    files = TeamFiles(folders)
    broken = []
    for name in files.names():
        try:
            team = files.definition(name)
        except TeamError as error:
            broken.append(f"team '{name}' can't be used: {error.message}")
            continue
        console.print(Text(f"{name}  {safe_line(team.description, _CELL)}".rstrip(), style="bold"))
        for role in team.roles:
            mark = " (generalist)" if role.name == team.generalist else ""
            console.print(Text(f"  {role.name}{mark}: {', '.join(role.tools) or 'no tools'}"))
            console.print(Padding(Text(safe_line(role.description, _CELL), style="dim"), (0, 0, 0, 6), expand=False))
        for hint in team_hints(team):
            console.print(Text(f"  hint: {safe_line(hint, limits.ERROR_BYTES)}", style="yellow"))
    for reason in broken:
        print_err(safe_line(reason, limits.ERROR_BYTES))
    return 1 if broken else 0
