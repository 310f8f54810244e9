"""What a run may do, granted once by its root: written by the run's first activity, read before every other one."""

from datetime import datetime

from cachetools import LRUCache

from activities.store.artifacts import ArtifactStore
from supervision import limits
from supervision.contract.base import Model
from supervision.store_keys import home_key, named_key


class RunGrant(Model):
    """What one supervisor and its worker agents may do.

    `depth` is 1 for a root. `models` are those that may be called, `nested_teams` those of its roles that are teams.
    """

    run_id: str
    workflow_id: str
    depth: int
    models: list[str]
    nested_teams: list[str]
    expires_at: datetime


class Grants:
    """The grants of the runs in a store, by the supervisor's chain of executions: an id that nobody can choose."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._known: LRUCache[tuple[str, str], RunGrant] = LRUCache(limits.KNOWN_CALLERS)

    async def write(self, chain_id: str, grant: RunGrant) -> None:
        """Stores the grant of a supervisor; one that was reset to its first step writes it again."""
        await self._store.put(_key(grant.run_id, chain_id), grant.model_dump_json().encode())
        self._known.pop((grant.run_id, chain_id), None)

    async def settle(self, run_id: str, namespace_id: str) -> None:
        """Marks the run's objects as those of a namespace: only from there they may ever be deleted."""
        await self._store.create(home_key(run_id, namespace_id), run_id.encode("utf-8", "surrogatepass"))

    async def require(self, store_id: str) -> None:
        """Raises ArtifactUnavailable if the grants of a run are in another store."""
        if store_id:
            await self._store.require(store_id)

    async def find(self, run_id: str, chain_id: str) -> RunGrant | None:
        """Returns the grant of a supervisor that works for this run, None if it has none there."""
        grant = self._known.get((run_id, chain_id))
        if grant is None and (stored := await self._store.find(_key(run_id, chain_id))) is not None:
            grant = self._known[run_id, chain_id] = RunGrant.model_validate_json(stored)
        return grant


def _key(run_id: str, chain_id: str) -> str:
    return named_key(run_id, f"grant.{chain_id}")
