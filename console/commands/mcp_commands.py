"""What the MCP servers of teams offer: shown beside what is pinned, and pinned by `teams pin`."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import RenderableType

from console.base.command import DONE, FAILED
from console.base.hints import hint
from console.base.terminal import Report, counted, indented, safe, safe_line
from runtime.paths import cache_dir
from runtime.settings import Settings
from supervision.base import limits
from supervision.contract.team import server_tool

if TYPE_CHECKING:
    from activities.teams.team_files import TeamFiles
    from activities.tools.mcp.mcp_servers import McpConnection
    from activities.tools.mcp.pins import Pinned

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ABOUT_CHARS = 80
_STYLES = {"+": "green", "-": "red", "@": "dim"}


@dataclass
class Offer:
    """What a server offers: all of its tools, those of them that the team file lists, and what is wrong."""

    server: str
    tools: "dict[str, Pinned]" = field(default_factory=dict)
    listed: "dict[str, Pinned]" = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The server in a line."""
        if self.problems:
            return safe_line("; ".join(self.problems), limits.ERROR_BYTES)
        if not self.listed:
            return f"{counted(len(self.tools), 'tool')}, of which the team file lists none"
        pinned = "they differ from team.lock" if self.changes else "as pinned"
        return f"{counted(len(self.tools), 'tool')}, {len(self.listed)} listed, {pinned}"


def team_files(settings: Settings) -> "TeamFiles":
    """Returns the teams of this environment, with its secrets."""
    # these load the tools' libraries: 0.3 s for some commands only
    from activities.files.file_cache import FileCache
    from activities.teams.team_files import TeamFiles
    from activities.tools.secrets import Secrets

    return TeamFiles(settings.teams_folders, FileCache(cache_dir()), Secrets(settings.secrets_dir))


async def offers(files: "TeamFiles", team: str) -> list[Offer]:
    """Returns what each server of a team offers now: this starts them. Raises TeamError."""
    connections = files.servers(team)
    try:
        return await asyncio.gather(*(_offer(files, team, name, found) for name, found in connections.items()))
    finally:
        await asyncio.gather(*(connection.close() for connection in connections.values()))


async def _offer(files: "TeamFiles", team: str, name: str, connection: "McpConnection") -> Offer:
    from activities.tools.mcp.mcp_servers import McpFailed
    from activities.tools.mcp.pins import differences, read_pins

    offer = Offer(name)
    try:
        offered = await connection.tools()
    except McpFailed as failed:
        offer.problems.append(str(failed))
        return offer
    offer.tools = {tool.name: tool for tool in offered}
    for tool in files.definition(team).mcp_servers[name].tools:
        found = [each for each in offered if each.name == tool]
        if not found:
            offer.problems.append(f"it has no tool '{tool}'; it has: {', '.join(offer.tools) or 'none'}")
        elif len(found) > 1:
            offer.problems.append(f"it has two tools '{tool}'")
        elif found[0].input_schema.get("type") != "object":
            offer.problems.append(f"the arguments of '{tool}' are no object")
        else:
            offer.listed[tool] = found[0]
    try:
        pinned = read_pins(files.folder(team)).get(name, {})
    except ValueError:
        pinned = {}
    offer.changes = list(differences(name, pinned, offer.listed))
    return offer


async def pin_team(settings: Settings, team: str) -> Report:
    """Shows how the definitions of a team's MCP tools differ from the pinned ones, and pins them."""
    from activities.tools.mcp.pins import LOCK, read_pins, write_pins

    files = team_files(settings)
    found, folder = await offers(files, team), files.folder(team)
    wrong = [offer for offer in found if offer.problems]
    try:
        kept = read_pins(folder)
    except ValueError:
        kept = {}
    changed = [line for offer in found if not offer.problems for line in offer.changes]
    if changed:
        unreached = {offer.server: kept.get(offer.server, {}) for offer in wrong}
        write_pins(folder, {**unreached, **{offer.server: offer.listed for offer in found if not offer.problems}})
    rows = [*_diff_rows(changed), f"{folder / LOCK}: {'written' if changed else 'nothing has changed'}"]
    if not found:
        rows = [f"team '{team}' has no section [mcp_servers.NAME], so there is nothing to pin"]
    notes = [f"mcp_servers.{offer.server} is not pinned: {offer.summary}" for offer in wrong]
    data = {offer.server: {name: tool.sha256 for name, tool in offer.listed.items()} for offer in found}
    return Report(data, lambda _: rows, notes, code=FAILED if wrong else DONE)


def offer_rows(team: str, found: list[Offer]) -> Iterator[RenderableType]:
    """Yields each server, what changed since it was pinned, and the lines for a team file that list its other tools."""
    for offer in found:
        good = not offer.problems
        yield indented(
            f"{'✔' if good else '✘'} MCP server {offer.server}: {offer.summary}", 2, "green" if good else "red"
        )
        yield from _diff_rows(offer.changes)
        if offer.changes and good:
            yield indented(f"pin them: {hint('teams', 'pin', team)}", 4)
        if others := [tool for name, tool in offer.tools.items() if name not in offer.listed]:
            yield indented('for team.toml, with "read" for each tool that changes nothing and sends nothing:', 4, "dim")
            if not offer.listed:
                yield indented(f"[mcp_servers.{offer.server}.tools]", 4)
            for tool in others:
                key = tool.name if _PLAIN_KEY.fullmatch(tool.name) else json.dumps(tool.name)
                about = safe_line(f"{server_tool(offer.server, tool.name)}: {tool.description}", _ABOUT_CHARS)
                yield indented(f'{key} = {{ effects = "write", approve = "always" }}  # {about}', 4)


def _diff_rows(lines: list[str]) -> Iterator[RenderableType]:
    for line in lines:
        yield indented(safe(line[: limits.ERROR_BYTES]), 4, _STYLES.get(line[:1], "bold"))
