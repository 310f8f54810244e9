"""Traces of a run in the store for later runs that build on it: its beginning, and its latest plan.

An ended run has its result there, too. Temporal may have forgotten it by then.
"""

from temporalio import activity

from activities.contracts.run_contracts import RunRef
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import digest_of, named_key
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import ArtifactRef

_RUN, _PLAN = "run", "plan"


class BegunRun(Model):
    """A run as it began: its `owner` as the request claims, what its subtasks share.

    `data_from_others`: what it was given as data is untrusted.
    """

    run_id: str
    owner: str = ""
    goal_ref: str = ""
    team_ref: str = ""
    attachments: list[ArtifactRef] = []
    files_ref: str = ""
    effort: str | None = None
    extracts: bool = False
    day: str = ""
    data_from_others: bool = False
    reuse_from: list[str] = []

    @property
    def attachment_digests(self) -> dict[str, str]:
        """The hashes of the attached texts by name."""
        return {item.name: digest_of(item.ref) or item.ref for item in self.attachments}


class LatestPlan(Model):
    """The place of the latest plan of a run, and of the team with the roles that it added."""

    plan_ref: str
    team_ref: str = ""


async def keep_begun(store: ArtifactStore, begun: BegunRun) -> None:
    """Stores the beginning of a run; after a reset to its first step once more."""
    data = begun.model_dump_json().encode("utf-8", "replace")
    await store.put(named_key("begun", begun.run_id, _RUN), data)


async def find_begun(store: ArtifactStore, run_id: str) -> BegunRun | None:
    """Returns the beginning of a run; None if the store has no such run, or it was deleted."""
    found = await store.find(named_key("begun", run_id, _RUN))
    return None if found is None else BegunRun.model_validate_json(found)


async def keep_plan(store: ArtifactStore, run: RunRef, latest: LatestPlan) -> None:
    """Stores the place of the latest plan of a run, within an activity.

    That of a nested run is its own matter.
    """
    if activity.info().workflow_id != run.run_id:
        return
    data = latest.model_dump_json().encode("utf-8", "replace")
    await store.put(named_key("latest", run.run_id, _PLAN), data)


async def find_plan(store: ArtifactStore, run_id: str) -> LatestPlan | None:
    """Returns the place of the latest plan of a run; None if it has none."""
    found = await store.find(named_key("latest", run_id, _PLAN))
    return None if found is None else LatestPlan.model_validate_json(found)
