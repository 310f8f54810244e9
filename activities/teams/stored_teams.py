"""Teams as they were when a run began: a later edit of a team file changes later runs only."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

from cachetools import LRUCache

from activities.contracts.run_contracts import RunRef
from activities.files.file_cache import FileCache, Files
from activities.files.manifest import RunFiles
from activities.files.report_room import RUN_CHARS
from activities.store.artifacts import ArtifactStore
from activities.store.reading import first_of
from activities.teams.team_files import LoadedTeam, TeamError, TeamFiles, team_card
from activities.teams.tool_states import ServedTeams, role_state, tool_state
from activities.tools.mcp.pins import Pinned
from activities.tools.tool import Tool
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.store_keys import named_key
from temporal_supervisor.supervision.base.text import clean, did_you_mean, one_line, quoted
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import NewRole
from temporal_supervisor.supervision.contract.team import Team, TeamCard
from temporal_supervisor.supervision.planning.new_roles import with_new_roles
from temporal_supervisor.supervision.reuse.recipes import RoleState, ToolState

# Of a team's data in the planner's prompt: ~1,700 tokens, paid once or twice a run.
CATALOGUE_CHARS = 6000
_CATALOGUE_LINE_CHARS = 600  # one table with its columns
_CATALOGUE_TIMEOUT = timedelta(seconds=8)  # loading the tables of a team takes about one
_CACHED_FILES = 256  # of so many runs what their files hold is kept in a process,
_CACHED_CHARS = 3 * RUN_CHARS  # and so much of all of them, beside that of the last one
log = logging.getLogger(__name__)


class StoredTeam(Model):
    """A stored team: its definition, default models, data, and definitions of MCP tools.

    `sources` maps each tool to the team whose file defines it. With `data_from_others` tools that
    read the run's data return untrusted text. Later runs compare states: `tools` has those of the
    tools that roles have or may have, `teams` those of teams within it, `state` its own, without
    roles of a plan.
    """

    team: Team
    sources: dict[str, str]
    worker_models: list[str]
    catalogue: str = ""
    pinned: dict[str, Pinned] = {}
    data_from_others: bool = False
    tools: dict[str, ToolState] = {}
    teams: dict[str, ToolState] = {}
    state: ToolState | None = None

    def role_states(self) -> dict[str, RoleState]:
        """Returns the states of its roles, by name."""
        models, tools, teams = self.worker_models, self.tools, self.teams
        return {role.name: role_state(role, models, tools, teams) for role in self.team.roles}


class StoredTeams:
    """Saves and loads the teams of runs.

    Definitions are frozen; the code of tools is the operator's current one.
    """

    def __init__(self, store: ArtifactStore, files: TeamFiles) -> None:
        self._store = store
        self._files = files
        self._run_files: LRUCache[str, RunFiles] = LRUCache(maxsize=_CACHED_FILES)

    @property
    def cache(self) -> FileCache:
        """The converted files of this machine."""
        return self._files.cache

    def files_of(self, run: RunRef) -> RunFiles | None:
        """Returns the files that the user gave to a run; None if there are none."""
        ref = run.files_ref
        if not ref:
            return None
        if ref not in self._run_files:
            while sum(files.chars for files in self._run_files.values()) > _CACHED_CHARS:
                self._run_files.popitem()  # of the run that was longest without a call
            self._run_files[ref] = RunFiles(self._store, self._files.cache, run.run_id, ref)
        return self._run_files[ref]

    async def save(
        self,
        run_id: str,
        team: str | Team,
        worker_models: list[str],
        files: Files | None = None,
        runs_tools: Callable[[str], bool] = lambda model: True,
        *,
        data_from_others: bool = False,
        models_of_roles: Mapping[str, list[str]] = MappingProxyType({}),
        supervisor_models: Sequence[str] = (),
    ) -> tuple[str, LoadedTeam]:
        """Stores a named or inline team for a run with some files.

        Returns its reference and the team. `runs_tools(model)` is True if the model's provider runs
        tools within replies. `models_of_roles` override the models that the team names. Raises
        TeamError.
        """
        if isinstance(team, Team):
            loaded = await self._files.load_inline(team)
        else:
            loaded = await self._files.load(team)
        loaded = replace(loaded, team=_with_models(loaded.team, models_of_roles))
        load = self._files.load
        teams = ServedTeams(load, worker_models, supervisor_models, runs_tools, data_from_others)
        loaded = teams.served(loaded)
        if files is not None:
            await _read_soon(files, run_id)

        used = loaded.toolbox.tools_named(loaded.team.named_tools)
        within = {role.team for role in loaded.team.roles if role.team}
        stored = StoredTeam(
            team=loaded.team,
            sources={tool.name: loaded.sources[tool.name] for tool in used},
            worker_models=worker_models,
            catalogue=await catalogue(used, files),
            pinned={tool.name: tool.pinned for tool in used if tool.pinned},
            data_from_others=data_from_others,
            tools={tool.name: await tool_state(tool) for tool in used},
            teams={name: await teams.state(name) for name in sorted(within)},
            state=await teams.state_of(loaded),
        )
        return await self._store_team(run_id, stored), loaded

    async def extend(self, run_id: str, ref: str, new_roles: list[NewRole]) -> str:
        """Adds a plan's checked new roles to the team at `ref`. Returns the new reference."""
        stored = await self._read_stored(ref)
        extended = with_new_roles(stored.team, new_roles)
        return await self._store_team(run_id, stored.model_copy(update={"team": extended}))

    async def load(self, ref: str) -> LoadedTeam:
        """Returns the team of a run with its tools.

        Raises SupervisionError `TeamUnavailable` if this Worker lacks a part.
        """
        stored = await self._read_stored(ref)
        try:
            toolbox = await self._files.toolbox(stored.sources, stored.pinned)
        except TeamError as error:
            raise SupervisionError(ErrorKind.TEAM_UNAVAILABLE, error.message) from error
        if stored.data_from_others:
            toolbox = toolbox.with_data_of_others()
        return LoadedTeam(stored.team, toolbox, stored.sources)

    async def catalogue(self, ref: str) -> str:
        """Returns the catalogue of the data that the team at `ref` had when the run began."""
        return (await self._read_stored(ref)).catalogue

    async def card(self, ref: str) -> TeamCard:
        """Returns the card of the team at `ref`."""
        stored = await self._read_stored(ref)
        return team_card(await self.load(ref), stored.worker_models)

    async def _store_team(self, run_id: str, stored: StoredTeam) -> str:
        name = partial(named_key, "team", run_id)
        return await self._store.put_hashed(name, stored.model_dump_json().encode())

    async def _read_stored(self, ref: str) -> StoredTeam:
        return await read_team(self._store, ref)


async def read_team(store: ArtifactStore, ref: str) -> StoredTeam:
    """Returns the frozen team at `ref`, without its tools: of any run, on any Worker.

    It is shared, so do not change it.
    """
    return await store.read(ref, _parse)


def _parse(data: bytes) -> StoredTeam:
    # Another version's may have other fields; a team's own file was checked when the run began.
    return StoredTeam.model_validate_json(data, extra="ignore")


async def _read_soon(files: Files, run_id: str) -> None:
    """Waits until a run's files are read, because its plan needs their columns, but not long."""
    try:
        await asyncio.wait_for(files.reports(), limits.FILES_TIMEOUT.total_seconds() / 2)
    except TimeoutError:
        log.warning("the files of run %s take long to read: its plan does without them", run_id)


def _with_models(team: Team, models: Mapping[str, list[str]]) -> Team:
    """Returns a team whose roles have these models. Raises TeamError for an unknown role."""
    names = [role.name for role in team.roles]
    for name in models:
        if name not in names:
            words = f"models.roles: team '{team.name}' has no role {quoted(name)}"
            meant = did_you_mean(name, names)
            raise TeamError(ErrorKind.INVALID_REQUEST, f"{words}{meant}")
    roles = []
    for role in team.roles:
        model = models.get(role.name, role.model)
        roles.append(role.model_copy(update={"model": model}))
    return team.model_copy(update={"roles": roles})


async def catalogue(tools: Sequence[Tool[Any]], files: Files | None = None) -> str:
    """Returns a line for each table and document that the tools can read now, up to a length."""
    # Untrusted names of columns would be instructions to the planner, whose plan all agents follow.
    trusted = [tool.catalogue for tool in tools if tool.returns == "trusted"]
    items: dict[str, str] = {}
    for read in dict.fromkeys(filter(None, trusted)):  # tools over the same data share one
        try:
            items |= await asyncio.wait_for(read(files), _CATALOGUE_TIMEOUT.total_seconds())
        except Exception as error:  # of any file; the tool returns it when it is called
            kind = type(error).__name__
            log.warning("some data of a team is not in the catalogue: %s: %s", kind, error)

    in_order = sorted(items, key=_place_in_catalogue)
    lines = [f"- {one_line(clean(items[name]), _CATALOGUE_LINE_CHARS)}" for name in in_order]
    shown = first_of(lines, CATALOGUE_CHARS)
    more = len(lines) - len(shown)
    if more:
        shown.append(f"- and {more} more, which the tools list")
    return "\n".join(shown)


def _place_in_catalogue(name: str) -> int:
    """Returns the place of a catalogue's item among others, by its name.

    The owner's words come first. Then tables: a plan names their columns and periods, documents can
    be searched.
    """
    if name.startswith("words "):
        return 0
    return 1 if name.startswith("table ") else 2
