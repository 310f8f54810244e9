"""A store that is away, another one or emptied is never taken for one that has not an object."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from activities.store.artifacts import ArtifactMissing, ArtifactStore, ArtifactUnavailable
from activities.store.store_urls import open_store
from temporal_supervisor.supervision.base.store_keys import STORE_ID


async def test_only_a_run_that_begins_makes_the_id_and_all_get_the_same(store_url: str) -> None:
    store = open_store(store_url)
    assert await store.identity() is None
    await store.put_upload(b"before any run")
    assert await store.identity() is None
    ids = await asyncio.gather(*(open_store(store_url).begin() for _ in range(6)))
    reopened = open_store(store_url)
    assert {await reopened.identity()} == set(ids)
    assert len(ids[0]) == 32
    await reopened.require(ids[0])
    assert STORE_ID in await reopened.list_keys()


async def test_a_run_that_begins_again_makes_no_id(store_url: str) -> None:
    store = open_store(store_url)
    with pytest.raises(ArtifactUnavailable, match="has no id, though the run used one"):
        await store.begin(again=True)
    assert await store.list_keys() == []


async def test_another_store_is_refused_with_both_ids(store_url: str, tmp_path: Path) -> None:
    other, own = await open_store(tmp_path / "other").begin(), await open_store(store_url).begin()
    with pytest.raises(ArtifactUnavailable, match=f"{own}.*{other}.*SUPERVISOR_ARTIFACTS_URL"):
        await open_store(store_url).require(other)


async def lose(store: ArtifactStore) -> None:
    """Empties a store behind the backs of those who use it, as an unmounted directory or a new bucket is empty."""
    for key in await open_store(store.url).list_keys():
        await open_store(store.url).delete(key)


@pytest.fixture
async def lost(store_url: str) -> tuple[ArtifactStore, str]:
    """A store that a run has used, and that was lost since, with the key of an object that was there."""
    store = open_store(store_url)
    await store.begin()
    key = await store.put_output("run", b"paid")
    await lose(store)
    return store, key


READS: dict[str, Callable[[ArtifactStore, str], Awaitable[object]]] = {
    "find": lambda store, key: store.find(key),
    "get": lambda store, key: store.get(key),
    "read": lambda store, key: store.read(key, len),
    "list": lambda store, _: store.list_keys("run/"),
    "adopt": lambda store, _: store.copy_upload("run", "uploads/" + "a" * 64),
    "begin": lambda store, _: store.begin(),
}


@pytest.mark.parametrize("doing", READS)
async def test_nothing_is_believed_absent_from_a_lost_store(lost: tuple[ArtifactStore, str], doing: str) -> None:
    store, key = lost
    with pytest.raises(ArtifactUnavailable, match="has no id, the run uses the store"):
        await READS[doing](store, key)
    assert await open_store(store.url).list_keys() == []


async def test_nothing_is_written_into_a_lost_local_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    await store.begin()
    (tmp_path / "store").rename(tmp_path / "away")
    (tmp_path / "store").mkdir()  # the mount point
    for writing in (store.put("run/goal", b"x"), store.create("run/goal", b"x"), store.put_output("run", b"x")):
        with pytest.raises(ArtifactUnavailable, match="not mounted"):
            await writing
    assert list((tmp_path / "store").iterdir()) == []
    (tmp_path / "store").rmdir()
    (tmp_path / "away").rename(tmp_path / "store")
    await store.put("run/goal", b"x")
    assert await store.get("run/goal") == b"x"


async def test_once_another_store_was_seen_nothing_is_written_any_more(store_url: str) -> None:
    store = open_store(store_url)
    store_id = await store.begin()
    await lose(store)
    await open_store(store_url).begin()
    with pytest.raises(ArtifactUnavailable):
        await store.find("run/goal")
    with pytest.raises(ArtifactUnavailable):  # what was seen before the loss counts no longer
        await store.require(store_id)
    with pytest.raises(ArtifactUnavailable):
        await store.put("run/goal", b"x")


async def test_in_the_right_store_what_is_missing_is_missing(store_url: str) -> None:
    store = open_store(store_url)
    await store.begin()
    assert await store.find("run/nothing") is None
    with pytest.raises(ArtifactMissing, match="no object 'run/nothing'"):
        await store.get("run/nothing")
    assert await store.list_keys("run/") == []


async def test_what_comes_back_between_two_looks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look finds an empty directory; before the id is seen again the true one is back."""
    store = open_store(tmp_path / "store")
    await store.begin()
    key = await store.put_output("run", b"paid")
    looked, identity = store._lookup, store.identity
    looks: list[str] = []

    async def away_once(wanted: str) -> bytes | None:
        looks.append(wanted)
        return None if len(looks) == 1 else await looked(wanted)

    async def noted() -> str | None:
        looks.append(STORE_ID)
        return await identity()

    monkeypatch.setattr(store, "_lookup", away_once)
    monkeypatch.setattr(store, "identity", noted)
    assert await store.find(key) == b"paid"
    assert looks == [key, STORE_ID, key]


async def test_two_runs_of_different_stores_do_not_vouch_for_each_other(tmp_path: Path) -> None:
    """A process whose store was swapped serves a run of the new one: one of the old one still believes nothing."""
    first, second = tmp_path / "first", tmp_path / "second"
    old_id, new_id = await open_store(first).begin(), await open_store(second).begin()
    first.rename(tmp_path / "away")
    second.rename(first)
    store = open_store(first)
    seen = asyncio.Event()

    async def of_old_run() -> None:
        with pytest.raises(ArtifactUnavailable):
            await store.require(old_id)
        await seen.wait()
        with pytest.raises(ArtifactUnavailable, match=f"{new_id}.*{old_id}"):
            await store.find("run/answer")

    async def of_new_run() -> None:
        await store.require(new_id)
        assert await store.find("run/answer") is None
        seen.set()

    await asyncio.gather(asyncio.create_task(of_old_run()), asyncio.create_task(of_new_run()))
