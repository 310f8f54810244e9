"""Teams as files: finding and reading them, and setting up their tools.

A team is a folder with a `team.toml`; the folder's name is the team's name. A small one:

    name = "default"
    generalist = "researcher"            # takes subtasks whose role is unknown

    [[roles]]
    name = "researcher"
    description = "Finds facts in documents."       # the planner chooses by this
    system_prompt = "You answer from documents only..."
    tools = ["search_documents"]                    # nothing else is ever run for this role

    [[tools]]
    name = "search_documents"
    uses = "document_search"                        # a kind of activities/teams/toolbox.py
    options = { documents = "documents/*.md" }      # paths are relative to the folder and stay inside it

An author's own tools go into a `tools.py` beside it, which defines `TOOLS: list[Tool]`; see
`activities/tools/tool.py`. Such a file is code and runs in the Worker with its rights: it is refused if anybody but
the operator could have written it.
"""

import asyncio
import contextlib
import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from activities.teams.team_definition import TeamError, read_definition, read_team
from activities.teams.team_thread import TeamThread
from activities.teams.toolbox import Toolbox, complaints
from activities.tools.files import Fingerprint, fingerprint
from activities.tools.tool import Tool
from supervision.base import limits
from supervision.base.errors import ErrorKind
from supervision.base.text import did_you_mean, quoted
from supervision.contract.team import RoleCard, Table, Team, TeamCard, ToolCard, is_name, tables
from supervision.planning.team_hints import team_hints

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedTeam:
    """A team with its tools; an inline one has no folder, and its tools come from the team files `sources`."""

    team: Team
    folder: Path | None
    toolbox: Toolbox
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Reading:
    """A team's files being read, or read."""

    files: Fingerprint
    thread: TeamThread
    team: "Future[LoadedTeam]"
    deadline: float

    @property
    def lost(self) -> bool:
        """True if the team was read and its thread hangs since then: it needs another one."""
        return self.thread.stuck and self.team.done() and self.team.exception() is None


class TeamFiles:
    """The teams in some folders; of two teams of the same name, the first folder's is used.

    A team is read in a thread of its own: what its author wrote may take for ever.
    """

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders
        self._readings: dict[str, _Reading] = {}

    def names(self) -> list[str]:
        """Returns the names of all teams that have a file, readable or not."""
        names = {file.parent.name for folder in self._folders for file in folder.glob("*/team.toml")}
        return sorted(name for name in names if is_name(name))

    def misnamed(self) -> list[Path]:
        """Returns the folders that hold a team file, and whose name can't be a team's."""
        folders = {file.parent for folder in self._folders for file in folder.glob("*/team.toml")}
        return sorted(folder for folder in folders if not is_name(folder.name))

    def has_code(self, name: str) -> bool:
        """True if the team of that name has tools that its author wrote."""
        return (self._folder(name) / "tools.py").is_file()

    def definition(self, name: str) -> Team:
        """Returns the team of that name as its file says, without running any code of it; TeamError `UnknownTeam`."""
        team = read_definition(self._folder(name))
        self._require_teams(team)
        return team

    async def read(self, *names: str) -> None:
        """Returns once these teams are read, or were given their time: `load` does not block the event loop then."""
        begun = []
        for name in names:
            with contextlib.suppress(TeamError):  # `load` says it
                begun.append(self._begun(name).team)
        pending = [asyncio.wrap_future(team) for team in begun if not team.done()]
        for team in pending:
            team.add_done_callback(lambda team: team.cancelled() or team.exception())  # `load` raises it
        if pending:
            await asyncio.wait(pending, timeout=limits.TEAM_READ_TIMEOUT.total_seconds())

    def load(self, name: str) -> LoadedTeam:
        """Returns the team of that name, read again whenever its team.toml or tools.py changed.

        Raises TeamError `UnknownTeam` if there is none, or with the problem of its file.
        """
        reading = self._begun(name)
        try:
            loaded = reading.team.result(max(0.0, reading.deadline - time.monotonic()))
        except TimeoutError:
            seconds = limits.TEAM_READ_TIMEOUT.total_seconds()
            problem = f"it cannot be read within {seconds:g} s: tools.py must not block when it is imported"
            raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{self._folder(name)}: {problem}") from None
        except TeamError:
            del self._readings[name]  # the cause may be corrected without a change of these files
            reading.thread.end()
            raise
        self._require_teams(loaded.team)
        return loaded

    def _begun(self, name: str) -> _Reading:
        folder = self._folder(name)
        current = fingerprint([file for file in (folder / "team.toml", folder / "tools.py") if file.is_file()])
        known = self._readings.get(name)
        if known is not None and known.files == current and not known.lost:
            return known
        if known is not None and known.team.done() and known.thread.serves:
            thread = known.thread
        else:
            thread = TeamThread(name)
            if known is not None:
                known.thread.end()
        deadline = time.monotonic() + limits.TEAM_READ_TIMEOUT.total_seconds()
        reading = _Reading(current, thread, thread.begin(partial(self._read, folder, thread)), deadline)
        if not (folder / "tools.py").is_file():
            thread.end()
        self._readings[name] = reading
        return reading

    def load_inline(self, team: Team) -> LoadedTeam:
        """Returns a team out of a request, with tools that team files registered.

        Its roles name a tool by its name, or as `team/tool` where several teams have one of that name. Raises
        TeamError `InvalidRequest` for a tool that no team file has or gives to inline teams, and for a `tools`
        section: commands, paths and addresses never come from a request.
        """
        if team.tools:
            raise TeamError(
                ErrorKind.INVALID_REQUEST, "team.tools: an inline team has no tools section, its roles name tools"
            )
        self._require_teams(team)
        registered = self._registered() if team.toolbox or any(role.tools for role in team.roles) else {}
        tools: dict[str, Tool[Any]] = {}
        origin = {id(tool): name.split("/")[0] for name, tool in registered.items()}

        def pick(names: list[str], where: str) -> list[str]:
            picked = [_pick(wanted, registered, where) for wanted in names]
            for tool in picked:
                if tools.setdefault(tool.name, tool) is not tool:
                    raise TeamError(ErrorKind.INVALID_REQUEST, f"{where}: two different tools are named '{tool.name}'")
            return [tool.name for tool in picked]

        roles = [
            {**role.model_dump(), "tools": pick(role.tools, f"team.roles.{role.name}.tools")} for role in team.roles
        ]
        toolbox = pick(team.toolbox, "team.toolbox")
        try:  # again, because `team/tool` and `tool` may be one tool that roles would share
            checked = Team.model_validate({**team.model_dump(), "roles": roles, "toolbox": toolbox})
        except ValidationError as error:
            raise TeamError(ErrorKind.INVALID_REQUEST, f"team: {complaints(error)}") from error
        return LoadedTeam(
            checked, None, Toolbox(tools.values()), frozenset(origin[id(tool)] for tool in tools.values())
        )

    def _folder(self, name: str) -> Path:
        for folder in self._folders:
            if is_name(name) and (folder / name / "team.toml").is_file():
                return folder / name
        known = ", ".join(self.names()) or "none"
        searched = ", ".join(str(folder) for folder in self._folders)
        raise TeamError(
            ErrorKind.UNKNOWN_TEAM,
            f"there is no team {quoted(name)}{did_you_mean(name, self.names())}; known teams: {known} "
            f"(searched in {searched})",
        )

    def _require_teams(self, team: Team) -> None:
        if unknown := self._unknown_teams(team.model_dump()):
            raise TeamError(ErrorKind.UNKNOWN_TEAM, "; ".join(unknown))

    def _unknown_teams(self, team: Table) -> list[str]:
        """Returns a problem for each role that is a team which no folder holds."""
        problems = []
        for role in tables(team.get("roles")):
            if isinstance(name := role.get("team"), str):
                try:
                    self._folder(name)
                except TeamError as error:
                    problems.append(f"roles.{role.get('name')}.team: {error.message}")
        return problems[: limits.FIELD_COMPLAINTS]

    def _read(self, folder: Path, thread: TeamThread) -> LoadedTeam:
        team, toolbox = read_team(folder, thread.own, self._unknown_teams)
        for hint in team_hints(team):
            log.warning("%s", hint)
        return LoadedTeam(team, folder, toolbox)

    def _registered(self) -> dict[str, Tool[Any]]:
        """Returns all tools of all teams as `team/tool`; a broken team file hides only its own."""
        tools: dict[str, Tool[Any]] = {}
        for name in self.names():
            try:
                toolbox = self.load(name).toolbox
            except TeamError as error:
                log.warning("team %s left out: %s", name, error.message)
                continue
            tools |= {f"{name}/{tool.name}": tool for tool in map(toolbox.get, toolbox.names()) if tool}
        return tools


def team_card(loaded: LoadedTeam, default_models: list[str]) -> TeamCard:
    """Returns the card of a team. A role's models are its own, else the default ones."""
    roles = []
    for role in loaded.team.roles:
        models = role.model or default_models
        tools = [tool for tool in map(loaded.toolbox.get, dict.fromkeys(role.tools)) if tool]
        cards = [ToolCard.model_validate(tool, from_attributes=True) for tool in tools]
        shared = role.model_dump(include=RoleCard.model_fields.keys() - {"tools", "model"})
        roles.append(RoleCard(**shared, tools=cards, model=models[0], fallback_models=models[1:]))
    team = loaded.team
    return TeamCard(name=team.name, generalist=team.generalist, roles=roles, on_failure=team.on_failure)


def _pick(wanted: str, registered: dict[str, Tool[Any]], where: str) -> Tool[Any]:
    offered = [name for name, tool in registered.items() if tool.inline]
    every = [name for name in registered if wanted in (name, name.split("/")[1])]
    matches = [name for name in every if name in offered]
    if len(matches) == 1:
        return registered[matches[0]]
    if matches:
        raise TeamError(
            ErrorKind.INVALID_REQUEST, f"{where}: several teams have a {quoted(wanted)}, name one: {', '.join(matches)}"
        )
    if every:
        problem = f"{where}: {every[0]} is for its own team alone, its file says inline = false"
        raise TeamError(ErrorKind.INVALID_REQUEST, problem)
    known = ", ".join(sorted(offered)) or "none"
    raise TeamError(
        ErrorKind.INVALID_REQUEST,
        f"{where}: no team file has a tool {quoted(wanted)}{did_you_mean(wanted, offered)}; registered are: {known}",
    )
