"""What finished runs of a team took, kept for estimates: one small object each, the newest 200 of each team."""

import asyncio
from datetime import datetime

from pydantic import ValidationError

from activities.store.artifacts import ArtifactStore
from supervision.base.store_keys import stats_key, stats_prefix
from supervision.planning.estimate import RunSample

_KEPT = 200  # of each team: more would say little more, and are read for each plan that waits for approval


async def keep_sample(store: ArtifactStore, team: str, run_id: str, ended_at: datetime, sample: RunSample) -> None:
    """Stores what a run took, and deletes the oldest beyond those that are kept."""
    await store.put(stats_key(team, run_id, ended_at), sample.model_dump_json().encode("utf-8", "replace"))
    for key in (await store.list_keys(stats_prefix(team)))[:-_KEPT]:
        await store.delete(key)


async def newest_samples(store: ArtifactStore, team: str) -> list[RunSample]:
    """Returns the samples of a team, the newest last; without those of another version, or just deleted."""
    keys = (await store.list_keys(stats_prefix(team)))[-_KEPT:]
    return [sample for data in await asyncio.gather(*map(store.find, keys)) if (sample := _read(data))]


def _read(data: bytes | None) -> RunSample | None:
    try:
        return RunSample.model_validate_json(data or b"")
    except ValidationError:
        return None
