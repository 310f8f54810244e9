"""Records of a run for later runs that build on it: its beginning, and its latest plan.

An ended run also has its result in the store. Temporal may have forgotten the run by then.
"""

from temporalio import activity

from activities.contracts.run_contracts import RunRef
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import (
    digest_of,
    is_named,
    named_key,
    run_prefix,
)
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import ArtifactRef


class BegunRun(Model):
    """A run at its beginning: the `owner` that its request claims, and shared facts.

    Runs with the same id are distinguished by their `first_run_id`. With `data_from_others` the
    data given to the run is untrusted.
    """

    run_id: str
    first_run_id: str = ""
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
    """The references of a run's latest plan, and of its team with the roles that the plan added."""

    plan_ref: str
    team_ref: str = ""


async def keep_begun(store: ArtifactStore, begun: BegunRun) -> None:
    """Stores the beginning of a run, again after a reset to its first step."""
    data = begun.model_dump_json().encode("utf-8", "replace")
    await store.put(named_key("begun", begun.run_id, begun.first_run_id), data)


async def own_beginning(store: ArtifactStore, run: RunRef) -> BegunRun | None:
    """Returns the beginning of the run that an activity works for; None if it was deleted."""
    found = await store.find(named_key("begun", run.run_id, run.first_run_id))
    return None if found is None else BegunRun.model_validate_json(found)


async def find_begun(store: ArtifactStore, run_id: str) -> BegunRun | None:
    """Returns the beginning of the last run with an id; None if it is not in the store.

    Also None if runs of several owners had the id: their ends cannot be told apart, and one owner
    would get the findings of another.
    """
    objects = store.objects(run_prefix(run_id))
    found = [meta async for meta in objects if is_named("begun", meta["path"])]
    found.sort(key=lambda meta: meta["last_modified"])
    runs = [BegunRun.model_validate_json(await store.get(meta["path"])) for meta in found]
    owners = {run.owner for run in runs}
    return runs[-1] if len(owners) == 1 else None


async def keep_plan(store: ArtifactStore, run: RunRef, latest: LatestPlan) -> None:
    """Stores the references of a root's latest plan, within an activity.

    A nested run's plan is not stored.
    """
    if activity.info().workflow_id != run.run_id:
        return
    data = latest.model_dump_json().encode("utf-8", "replace")
    await store.put(named_key("latest", run.run_id, run.first_run_id), data)


async def find_plan(store: ArtifactStore, begun: BegunRun) -> LatestPlan | None:
    """Returns the references of a run's latest plan; None if it has none."""
    found = await store.find(named_key("latest", begun.run_id, begun.first_run_id))
    return None if found is None else LatestPlan.model_validate_json(found)
