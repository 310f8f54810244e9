"""Teams as files: finding and reading them, and setting up their tools.

A team is a folder with a `team.toml`; the folder's name is the team's name. A `tools.py` beside it,
which defines `TOOLS: list[Tool]`, is code and runs in the Worker with its rights: it is refused if
users other than the operator could have written it. A `team.lock` pins the definitions of MCP
tools. See docs/teams-and-tools.md.
"""

import asyncio
import contextlib
import logging
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from activities.files.file_cache import FileCache
from activities.teams.own_tools import OwnTools
from activities.teams.toolbox import Toolbox, complaints, open_toolbox
from activities.tools.files import Fingerprint, fingerprint
from activities.tools.mcp.mcp_servers import McpConnection, McpTools
from activities.tools.mcp.pins import LOCK, Pinned
from activities.tools.secrets import Secrets
from activities.tools.tool import Tool, ToolSource
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.text import did_you_mean, one_line, quoted
from temporal_supervisor.supervision.contract.request import complaint_lines
from temporal_supervisor.supervision.contract.team import (
    GENERAL,
    NAME_RULE,
    Role,
    RoleBase,
    RoleCard,
    Team,
    TeamCard,
    ToolCard,
    is_name,
)

_FORMER_NAMES = {"default": "almanac"}
"""Former names of bundled teams, which still lead to them where no folder has such a team."""
TEAM_FILE_BYTES = 1024 * 1024  # a team file is written by hand

log = logging.getLogger(__name__)


class TeamError(SupervisionError):
    """A team that cannot be used.

    The kind is `UnknownTeam`, with the team's `problems`, or `InvalidRequest` if it is inline.
    """

    def __init__(self, kind: ErrorKind, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(kind, message)
        self.problems = problems


@dataclass(frozen=True)
class LoadedTeam:
    """A team with its tools; `sources` maps each tool to the team whose file defines it."""

    team: Team
    toolbox: Toolbox
    sources: dict[str, str]


class TeamFiles:
    """The teams in some folders; of two teams with the same name, the first folder's is used."""

    def __init__(
        self,
        folders: list[Path],
        cache: FileCache | None = None,
        secrets: Secrets | None = None,
        mcp_memory_mib: int = limits.MCP_MEMORY_MIB,
        *,
        data: bool = True,
    ) -> None:
        """Uses some folders; without `data` the files that tools read may be missing.

        See `open_toolbox`.
        """
        self._folders = folders
        self._data = data
        self._memory_mib = mcp_memory_mib
        self._secrets = secrets or Secrets()
        self.cache = cache or FileCache()
        self._readings: dict[str, tuple[Fingerprint, asyncio.Task[LoadedTeam]]] = {}

    def names(self) -> list[str]:
        """Returns the names of all folders with a team file, usable or not."""
        files = chain.from_iterable(folder.glob("*/team.toml") for folder in self._folders)
        return sorted({file.parent.name for file in files})

    def servers(self, team: Team) -> dict[str, McpConnection]:
        """Returns a connection to each MCP server of a team that has a file."""
        folder = self.folder(team.name)
        return {
            name: McpConnection(folder, server, self._secrets, self._memory_mib)
            for name, server in team.mcp_servers.items()
        }

    def definition(self, name: str) -> Team:
        """Returns the team of that name as its file defines it, without running any of its code.

        Raises TeamError `UnknownTeam`.
        """
        folder = self.folder(name)
        name = folder.name
        file = folder / "team.toml"
        try:
            if file.stat().st_size > TEAM_FILE_BYTES:
                raise ValueError(f"the file is larger than {TEAM_FILE_BYTES} bytes")
            read = {**tomllib.loads(file.read_text(encoding="utf-8")), "name": name}
            team = Team.model_validate(read)
        except ValidationError as error:
            lines = complaint_lines(error, value=read)
            raise _broken(folder, [line.removeprefix("request: ") for line in lines]) from error
        except (ValueError, OSError, RecursionError) as error:  # TOML's name the line
            raise _broken(folder, [str(error)]) from error
        self._require_teams(team)
        return team

    async def load(self, name: str) -> LoadedTeam:
        """Returns the team of that name with its tools, read again after a change of its files.

        Raises TeamError `UnknownTeam`.
        """
        folder = self.folder(name)
        name = folder.name
        read = [folder / file for file in ("team.toml", "tools.py", LOCK)]
        current = fingerprint([file for file in read if file.is_file()])
        reading = self._readings.get(name)
        if reading is None or reading[0] != current:
            begun = asyncio.create_task(self._load_folder(name, folder))
            # If nobody waits for it any longer, its exception is nobody's, too.
            begun.add_done_callback(lambda done: done.cancelled() or done.exception())
            reading = self._readings[name] = current, begun

        seconds = limits.TEAM_READ_TIMEOUT.total_seconds()
        _, team = reading
        try:
            if team.done():  # most often: each call of an agent asks for its team
                return team.result()
            # All who ask meanwhile wait for one reading, which outlives their timeouts.
            return await asyncio.wait_for(asyncio.shield(team), seconds)
        except TimeoutError:
            problem = f"{folder}: it cannot be read within {seconds:g} s"
            advice = "tools.py must not block when it is imported"
            raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{problem}: {advice}") from None
        except TeamError:
            # The cause may be corrected without a change of these files.
            if self._readings.get(name) is reading:
                del self._readings[name]
            raise

    async def _load_folder(self, name: str, folder: Path) -> LoadedTeam:
        team = await asyncio.to_thread(self.definition, name)
        code = folder / "tools.py"
        others: list[tuple[str, ToolSource]] = []
        if code.is_file():
            others.append((str(code), OwnTools(code)))
        for server, connection in self.servers(team).items():
            others.append((f"mcp_servers.{server}", McpTools(server, connection)))
        toolbox, problems = await open_toolbox(
            team.tools,
            folder,
            others,
            self.cache,
            self._secrets,
            data=self._data,
        )
        if not any(problem.startswith(f"{code}: ") for problem in problems):
            # Else one that seems unknown may be of the broken file.
            problems += _unknown_tools(team, toolbox)
            problems += toolbox.combination_problems(team.roles)
        if problems:
            raise _broken(folder, problems)
        return LoadedTeam(team, toolbox, dict.fromkeys(toolbox.names(), name))

    async def load_inline(self, team: Team) -> LoadedTeam:
        """Returns a team from a request, whose roles name tools as `team/tool`.

        Tools of `general` are also named `tool`. Raises TeamError `InvalidRequest`, also for
        sections `tools` and `mcp_servers`: commands, paths and addresses never come from a request.
        """
        if team.tools or team.mcp_servers:
            helps = "its roles name tools such as team/tool"
            raise _refusal(f"team: an inline team has no tools or mcp_servers, {helps}")
        self._require_teams(team)

        sources: dict[str, str] = {}

        async def resolve_tools(names: list[str], where: str) -> list[str]:
            tools = []
            for name in names:
                source, tool = name.split("/", 1) if "/" in name else (GENERAL, name)
                await self._require_tool(source, tool, where)
                source = self.folder(source).name
                if sources.setdefault(tool, source) != source:
                    raise _refusal(f"{where}: two different tools are named '{tool}'")
                tools.append(tool)
            return tools

        # Roles name their tools without a team from here on.
        fields = team.model_dump()
        for role in fields["roles"]:
            role["tools"] = await resolve_tools(role["tools"], f"team.roles.{role['name']}.tools")
        fields["toolbox"] = await resolve_tools(team.toolbox, "team.toolbox")
        try:  # again, because `general/tool` and `tool` are one tool that roles would share
            checked = Team.model_validate(fields)
        except ValidationError as error:
            raise _refusal(f"team: {complaints(error)}") from error

        toolbox = await self.toolbox(sources, {})
        problems = toolbox.combination_problems(checked.roles)
        if problems:
            raise _refusal("; ".join(f"team.{problem}" for problem in problems))
        return LoadedTeam(checked, toolbox, sources)

    async def _require_tool(self, team: str, tool: str, where: str) -> None:
        try:
            toolbox = (await self.load(team)).toolbox
        except TeamError as error:
            raise _refusal(f"{where}: {error.message}") from None
        tools = toolbox.tools_named(toolbox.names())
        offered = [other.name for other in tools if other.inline]
        if tool not in offered:
            has = ", ".join(offered) or "none"
            unknown = f"team '{team}' offers no tool {quoted(tool)}{did_you_mean(tool, offered)}"
            raise _refusal(f"{where}: {unknown}; it has: {has}")

    async def toolbox(self, sources: dict[str, str], pinned: dict[str, Pinned]) -> Toolbox:
        """Returns the tools of some teams, by name, with pinned definitions.

        Raises TeamError for a tool that is gone.
        """
        teams = {name: await self.load(name) for name in dict.fromkeys(sources.values())}
        tools: list[Tool[Any]] = []
        lacking: list[str] = []
        for name, team in sources.items():
            tool = teams[team].toolbox.get(name)
            if tool is None:
                lacking.append(f"{team}/{name}")
            else:
                tools.append(tool.as_pinned(pinned.get(name)))
        if lacking:
            gone = "the run was started with tools that no team here has"
            raise _refusal(f"{gone}: {', '.join(lacking)}")
        return Toolbox(tools)

    def folder(self, name: str) -> Path:
        """Returns the folder of the team of that name. Raises TeamError `UnknownTeam`."""
        folder_names = [name, _FORMER_NAMES.get(name, name)] if is_name(name) else []
        for folder_name in folder_names:
            for folder in self._folders:
                if (folder / folder_name / "team.toml").is_file():
                    return folder / folder_name

        names = list(filter(is_name, self.names()))
        meant = did_you_mean(name, names) if is_name(name) else f": a name is {NAME_RULE}"
        known = f"known teams: {', '.join(names) or 'none'}"
        searched = f"(searched in {', '.join(map(str, self._folders))})"
        message = f"there is no team {quoted(name)}{meant}; {known} {searched}"
        raise TeamError(ErrorKind.UNKNOWN_TEAM, message)

    def _require_teams(self, team: Team) -> None:
        """Raises TeamError for a role that is a team which no folder has."""
        for role in team.roles:
            if role.team is None:
                continue
            try:
                self.folder(role.team)
            except TeamError as error:
                problem = f"roles.{role.name}.team: {error.message}"
                raise TeamError(error.kind, problem) from None


def team_card(loaded: LoadedTeam, default_models: list[str]) -> TeamCard:
    """Returns the card of a team. A role without models gets the default ones."""
    roles = []
    for role in loaded.team.roles:
        models = role.model or default_models
        shared = role.model_dump(include=set(RoleBase.model_fields))
        tools = loaded.toolbox.tools_named(role.tools)
        cards = [ToolCard.model_validate(tool, from_attributes=True) for tool in tools]
        roles.append(RoleCard(**shared, tools=cards, model=models[0], fallback_models=models[1:]))
    team = loaded.team
    return TeamCard(
        name=team.name,
        generalist=team.generalist,
        roles=roles,
        on_failure=team.on_failure,
    )


def roles_of_teams(folders: Sequence[Path]) -> dict[str, Role]:
    """Returns the roles in all team files as `team/role`.

    Broken files, which `starter.py teams` reports, are left out.
    """
    files = TeamFiles(list(folders))
    roles: dict[str, Role] = {}
    for name in files.names():
        with contextlib.suppress(TeamError):
            roles |= {f"{name}/{role.name}": role for role in files.definition(name).roles}
    return roles


def _broken(folder: Path, problems: list[str]) -> TeamError:
    code = str(folder / "tools.py")
    is_code_alone = all(problem.startswith(code) for problem in problems)
    where = "" if is_code_alone else f"{folder / 'team.toml'}: "
    message = one_line(f"{where}{'; '.join(problems)}", limits.ERROR_BYTES)
    return TeamError(ErrorKind.UNKNOWN_TEAM, message, problems)


def _unknown_tools(team: Team, toolbox: Toolbox) -> list[str]:
    known = {*toolbox.names(), *(entry.name for entry in team.tools), *team.server_tools}
    has = one_line(", ".join(sorted(known)), limits.PARAGRAPH_BYTES) or "none"
    named = [(f"roles.{role.name}.tools", name) for role in team.roles for name in role.tools]
    named += [("toolbox", name) for name in team.toolbox]
    unknown = [(where, name) for where, name in named if name not in known]
    return [
        f"{where}: there is no tool {quoted(name)}{did_you_mean(name, known)}; the team has: {has}"
        for where, name in unknown[: limits.FIELD_COMPLAINTS]
    ]


def _refusal(problem: str) -> TeamError:
    return TeamError(ErrorKind.INVALID_REQUEST, problem)
