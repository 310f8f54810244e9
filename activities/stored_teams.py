"""Teams as they were when a run began: a later edit of a team file changes later runs only."""

from typing import Literal

from activities.artifact_store import ArtifactStore
from activities.team_files import LoadedTeam, TeamFiles
from supervision.base import Model
from supervision.keys import named_key
from supervision.team import Team

_CACHED = 256


class StoredTeam(Model):
    """A team as stored: its definition, and where its tools come from."""

    source: Literal["file", "inline"]
    team: Team


class StoredTeams:
    """Saves and loads the teams of runs. Definitions are frozen; tools are the operator's current ones."""

    def __init__(self, store: ArtifactStore, files: TeamFiles) -> None:
        self._store = store
        self._files = files
        self._cache: dict[str, StoredTeam] = {}

    async def save(self, run_id: str, team: str | Team) -> tuple[str, LoadedTeam]:
        """Stores the named or inline team for a run; returns its reference. Raises TeamError."""
        if isinstance(team, str):
            loaded = self._files.load(team)
            stored = StoredTeam(source="file", team=loaded.team)
        else:
            loaded = self._files.load_inline(team)
            stored = StoredTeam(source="inline", team=team)
        ref = named_key(run_id, "team")
        await self._store.put(ref, stored.model_dump_json().encode())
        return ref, loaded

    async def load(self, ref: str) -> LoadedTeam:
        """The team of a run with its tools. Raises TeamError when its files are gone."""
        stored = self._cache.get(ref)
        if stored is None:
            stored = StoredTeam.model_validate_json(await self._store.get(ref))
            if len(self._cache) >= _CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[ref] = stored
        if stored.source == "inline":
            return self._files.load_inline(stored.team)
        current = self._files.load(stored.team.name)
        return LoadedTeam(team=stored.team, folder=current.folder, toolbox=current.toolbox)
