"""The grants of runs, created when a run is prepared and named by the hash of their content."""

from datetime import datetime
from functools import partial

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import is_named, named_key
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits


class RunGrant(Model):
    """The rights of a supervisor and its worker agents: models to call, roles that are teams.

    A root has depth 1. `endpoint` has the traits of the models, as known when the root began: calls
    follow them. With `data_from_others` the data given to the run is untrusted, also in nested
    runs. Findings may be taken from the runs in `reuse_from`.
    """

    run_id: str
    workflow_id: str
    depth: int
    models: list[str]
    nested_teams: list[str]
    expires_at: datetime
    endpoint: EndpointFacts = EndpointFacts()
    data_from_others: bool = False
    reuse_from: list[str] = []

    def covers(self, workflow_id: str) -> bool:
        """True for the supervisor's workflow and its descendants, whose ids begin with its own."""
        return workflow_id == self.workflow_id or workflow_id.startswith(f"{self.workflow_id}/")


async def write_grant(store: ArtifactStore, grant: RunGrant) -> str:
    """Stores a grant. Returns its reference."""
    key_for = partial(named_key, "grant", grant.run_id)
    return await store.put_hashed(key_for, grant.model_dump_json().encode())


async def find_grant(store: ArtifactStore, run_id: str, ref: str) -> RunGrant | None:
    """Returns the grant at `ref`; None if that is not a grant of this run.

    Raises ArtifactError, also if the store lacks it.
    """
    if not is_named("grant", ref, run_id):
        return None
    grant = await store.read(ref, RunGrant.model_validate_json)
    return grant if grant.run_id == run_id else None


async def granted_traits(store: ArtifactStore, run_id: str, ref: str, model: str) -> ModelTraits:
    """Returns the traits of a model by the run's grant, or default traits without a grant.

    Raises ArtifactError.
    """
    grant = await find_grant(store, run_id, ref)
    return grant.endpoint.traits(model) if grant else ModelTraits()
