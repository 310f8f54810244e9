"""Samples of finished runs in the store."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from activities.store.artifacts import open_store, read_contents
from activities.store.spending import keep_sample, newest_samples
from supervision.base.store_keys import run_of, run_prefix, stats_key, stats_prefix
from supervision.planning.estimate import RunSample, Took

START = datetime(2026, 1, 1, tzinfo=UTC)


def sample(calls: float) -> RunSample:
    return RunSample(parts=[], rest=Took(), total=Took(calls=calls))


async def test_the_newest_samples_of_a_team_are_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(203):
        await keep_sample(store, "a/b", f"run {number}", START + timedelta(seconds=number), sample(number))
    await keep_sample(store, "other", "run", START, sample(1))
    assert [kept.total.calls for kept in await newest_samples(store, "a/b")] == [*range(3, 203)]
    assert len(await store.list_keys(stats_prefix("a/b"))) == 200
    await keep_sample(store, "a/b", "run 202", START + timedelta(seconds=202), sample(7))  # tried once more
    assert [kept.total.calls for kept in await newest_samples(store, "a/b")][-2:] == [201, 7]


async def test_samples_are_no_run(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await keep_sample(store, "t", "one", START, sample(1))
    assert (await read_contents(store)).runs == []
    assert run_prefix("stats") != "stats/"
    with pytest.raises(ValueError, match="belongs to no run"):
        run_of(stats_key("t", "one", START))
    with pytest.raises(ValueError, match="not the prefix of one run"):
        await store.delete_run("stats/")
