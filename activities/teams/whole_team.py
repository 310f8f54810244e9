"""A team read as a whole: its definition, the tools it sets up, its author's own; all that is wrong is told at once."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from activities.teams.own_tools import own_tools
from activities.teams.team_definition import TeamError, as_team, naming, read_table
from activities.teams.toolbox import Toolbox, set_up_tools
from activities.tools.tool import Tool
from supervision import limits
from supervision.contract.team import Table, Team, ToolEntry, names_of, tables, texts
from supervision.errors import ErrorKind
from supervision.text import did_you_mean, one_line, quoted


def read_team(
    folder: Path, bind: Callable[[Tool[Any]], Tool[Any]], unknown_teams: Callable[[Table], list[str]]
) -> tuple[Team, Toolbox]:
    """Returns a team and its tools; `bind` makes the author's own ready.

    Raises TeamError with all that is wrong, also what `unknown_teams` says of the teams that roles name.
    """
    file = folder / "team.toml"
    with naming(file):
        read = read_table(file)
        team, problems = as_team(read, folder)
        broken, own = "", list[Tool[Any]]()
        try:
            own = [bind(tool) for tool in own_tools(folder / "tools.py")]
        except TeamError as error:
            broken = error.message
        tools, unusable = set_up_tools(_entries(read), folder)
        problems += unusable
        if not broken:  # else a tool that seems unknown may be one of the author's
            problems += _unknown_tools(read, [tool.name for tool in own])
        if team is None or problems or broken:
            problems += unknown_teams(read)
            told = [f"{file}: {one_line('; '.join(problems), limits.ERROR_BYTES)}"] if problems else []
            message = "; ".join(filter(None, [*told, broken]))
            raise TeamError(ErrorKind.UNKNOWN_TEAM, message, [*filter(None, [*problems, broken])])
        return team, Toolbox([*own, *tools])


def _entries(read: Table) -> list[ToolEntry]:
    """Returns the tools to set up; what is wrong with the others was told with the team's fields."""
    entries = []
    for table in tables(read.get("tools")):
        with suppress(ValidationError):
            entries.append(ToolEntry.model_validate(table))
    return entries


def _unknown_tools(read: Table, own: list[str]) -> list[str]:
    """Returns a problem for each tool that a role or the toolbox names, and that the team does not have."""
    known = {*own, *names_of(tables(read.get("tools")))}
    used = [(f"roles.{role.get('name')}.tools", texts(role.get("tools"))) for role in tables(read.get("roles"))]
    has = one_line(", ".join(sorted(known)), limits.LIST_SHOWN_BYTES) or "none"
    return [
        f"{one_line(where, limits.FIELD_SHOWN_BYTES)}: there is no tool {quoted(name)}"
        f"{did_you_mean(name, known)}; the team has: {has}"
        for where, names in [*used, ("toolbox", texts(read.get("toolbox")))]
        for name in names
        if name not in known
    ][: limits.FIELD_COMPLAINTS]
