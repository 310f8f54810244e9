"""The tools that a team's MCP servers offer now, compared with the pinned ones."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import RenderableType

from activities.teams.team_files import TeamFiles
from activities.tools.mcp.mcp_servers import McpConnection, McpFailed
from activities.tools.mcp.pins import Pinned, differences, read_pins
from temporal_supervisor.console.base.command import hint
from temporal_supervisor.console.base.terminal import counted, indented, safe, safe_line
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.team import server_tool

_ABOUT_CHARS = 80
_STYLES = {"+": "green", "-": "red", "@": "dim"}


@dataclass
class Offer:
    """The offer of a server: all its tools, those that the team file lists, and problems."""

    server: str
    tools: dict[str, Pinned] = field(default_factory=dict)
    listed: dict[str, Pinned] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The server on one line."""
        if self.problems:
            return safe_line("; ".join(self.problems), limits.ERROR_BYTES)
        if not self.listed:
            return f"{counted(len(self.tools), 'tool')}, of which the team file lists none"
        pinned = "they differ from team.lock" if self.changes else "as pinned"
        return f"{counted(len(self.tools), 'tool')}, {len(self.listed)} listed, {pinned}"


async def offers(files: TeamFiles, team: str) -> list[Offer]:
    """Starts a team's servers and returns their present offers. Raises TeamError."""
    named = files.definition(team)
    asking = [_offer(name, connection) for name, connection in files.servers(named).items()]
    return await asyncio.gather(*asking)


async def _offer(name: str, connection: McpConnection) -> Offer:
    try:
        tools = {tool.name: tool for tool in await connection.tools()}
    except McpFailed as failed:
        return Offer(name, problems=[str(failed)])

    has = ", ".join(tools) or "none"
    offer = Offer(name, tools)
    for tool in connection.server.tools:
        if tool in tools:
            offer.listed[tool] = tools[tool]
        else:
            offer.problems.append(f"it has no tool '{tool}'; it has: {has}")
    pinned = {}
    with contextlib.suppress(ValueError):  # of a lock that is written anew
        pinned = read_pins(connection.folder).get(name, {})
    offer.changes = list(differences(name, pinned, offer.listed))
    return offer


def offer_rows(team: str, found: list[Offer]) -> Iterator[RenderableType]:
    """Yields each server with its changes since it was pinned, and its other tools."""
    for offer in found:
        mark, style = ("✘", "red") if offer.problems else ("✔", "green")
        yield indented(f"{mark} MCP server {offer.server}: {offer.summary}", 2, style)
        yield from diff_rows(offer.changes)
        if offer.changes and not offer.problems:
            yield indented(f"pin them: {hint('teams', 'pin', team)}", 4)
        yield from _rows_for_a_team_file(offer)


def _rows_for_a_team_file(offer: Offer) -> Iterator[RenderableType]:
    """Yields the lines that would add a server's other tools to a team file."""
    others = [tool for name, tool in offer.tools.items() if name not in offer.listed]
    if not others:
        return
    words = 'for team.toml, with "read" for each tool that changes nothing and sends nothing:'
    yield indented(words, 4, "dim")
    if not offer.listed:
        yield indented(f"[mcp_servers.{offer.server}.tools]", 4)
    for tool in others:
        name = server_tool(offer.server, tool.name)
        about = safe_line(f"{name}: {tool.description}", _ABOUT_CHARS)
        entry = f'{json.dumps(tool.name)} = {{ effects = "write", approve = "always" }}'
        yield indented(f"{entry}  # {about}", 4)


def diff_rows(lines: list[str]) -> Iterator[RenderableType]:
    """Yields the lines of a diff in colour."""
    for line in lines:
        yield indented(safe(line[: limits.ERROR_BYTES]), 4, _STYLES.get(line[:1], "bold"))
