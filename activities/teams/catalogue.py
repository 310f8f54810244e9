"""The catalogue of a team's data, for its planner: tables with columns and ranges, documents with titles."""

import asyncio
import logging
from typing import Any

from activities.teams.toolbox import Toolbox
from activities.tools.tool import Tool
from supervision import limits
from supervision.contract.team import Team
from supervision.text import clean, one_line

log = logging.getLogger(__name__)


async def catalogue(team: Team, toolbox: Toolbox) -> str:
    """Returns a line for each table and document that the team's tools reach; whole lines, as many as there is room.

    Data that cannot be read now is left out: a plan can be made without it.
    """
    names = dict.fromkeys([tool for role in team.roles for tool in role.tools] + team.toolbox)
    tools = [tool for tool in map(toolbox.get, names) if tool is not None and tool.catalogue is not None]
    items: dict[str, str] = {}
    for tool in tools:
        for name, line in (await _items(tool)).items():
            items[name] = max(items.get(name, ""), line, key=len)  # two tools may reach the same table
    # Tables first: a plan names their columns and periods, documents can be searched.
    names_in_order = sorted(items, key=lambda name: not name.startswith("table "))
    return _bounded([one_line(clean(items[name]), limits.CATALOGUE_LINE_CHARS) for name in names_in_order])


async def _items(tool: Tool[Any]) -> dict[str, str]:
    assert tool.catalogue is not None
    try:
        return await asyncio.wait_for(tool.catalogue(), limits.CATALOGUE_TIMEOUT.total_seconds())
    except Exception as error:  # whatever a file may hold: the tool itself says it, when it is called
        log.warning("the data of tool %s is not in the catalogue: %s: %s", tool.name, type(error).__name__, error)
        return {}


def _bounded(lines: list[str]) -> str:
    room, shown = limits.CATALOGUE_CHARS, list[str]()
    for line in lines:
        room -= len(line) + 3
        if room < 0:
            return "\n".join([*shown, f"- and {len(lines) - len(shown)} more, which the tools list"])
        shown.append(f"- {line}")
    return "\n".join(shown)
