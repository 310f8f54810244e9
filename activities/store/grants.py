"""What a run may do, granted once when it is prepared: data whose name is its hash, so that it cannot be changed."""

from datetime import datetime
from functools import partial

from activities.store.artifacts import ArtifactStore
from supervision.base.store_keys import is_named, named_key
from supervision.contract.base import Model


class RunGrant(Model):
    """What a supervisor, a root with depth 1, and its worker agents may do: models to call, roles that are teams."""

    run_id: str
    workflow_id: str
    depth: int
    models: list[str]
    nested_teams: list[str]
    expires_at: datetime

    def covers(self, workflow_id: str) -> bool:
        """True for the supervisor's own workflow and for all below it: ids of children begin with their parent's."""
        return workflow_id == self.workflow_id or workflow_id.startswith(f"{self.workflow_id}/")


async def write_grant(store: ArtifactStore, grant: RunGrant) -> str:
    """Stores a grant. Returns its reference."""
    return await store.put_hashed(partial(named_key, "grant", grant.run_id), grant.model_dump_json().encode())


async def find_grant(store: ArtifactStore, run_id: str, ref: str) -> RunGrant | None:
    """Returns the grant at `ref`; None if this run has no such grant. Raises as the store does."""
    grant = await store.parsed(ref, RunGrant.model_validate_json) if is_named("grant", ref, run_id) else None
    return grant if grant and grant.run_id == run_id else None
