"""Traces of a run in the store for later runs that build on it: its beginning, and its latest plan.

An ended run has its result there, too. Temporal may have forgotten it by then.
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
    """A run as it began: its `owner` as the request claims, what its subtasks share.

    Of runs that had the same id each is known by its `first_run_id`.
    `data_from_others`: what it was given as data is untrusted.
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
    """The place of the latest plan of a run, and of the team with the roles that it added."""

    plan_ref: str
    team_ref: str = ""


async def keep_begun(store: ArtifactStore, begun: BegunRun) -> None:
    """Stores the beginning of a run; after a reset to its first step once more."""
    data = begun.model_dump_json().encode("utf-8", "replace")
    await store.put(named_key("begun", begun.run_id, begun.first_run_id), data)


async def own_beginning(store: ArtifactStore, run: RunRef) -> BegunRun | None:
    """Returns the beginning of the run that an activity works for; None if it was deleted."""
    found = await store.find(named_key("begun", run.run_id, run.first_run_id))
    return None if found is None else BegunRun.model_validate_json(found)


async def find_begun(store: ArtifactStore, run_id: str) -> BegunRun | None:
    """Returns the beginning of the last run of an id; None if the store has none (any more).

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
    """Stores the place of the latest plan of a run, within an activity.

    That of a nested run is its own matter.
    """
    if activity.info().workflow_id != run.run_id:
        return
    data = latest.model_dump_json().encode("utf-8", "replace")
    await store.put(named_key("latest", run.run_id, run.first_run_id), data)


async def find_plan(store: ArtifactStore, begun: BegunRun) -> LatestPlan | None:
    """Returns the place of the latest plan of a run; None if it has none."""
    found = await store.find(named_key("latest", begun.run_id, begun.first_run_id))
    return None if found is None else LatestPlan.model_validate_json(found)
