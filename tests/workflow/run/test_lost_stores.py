"""A store that is unmounted, swapped or emptied under open runs: they wait, pay nothing twice, and go on."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from activities.store.store_urls import open_store
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import Status
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools, when
from tests.serving import own_server, store_of
from tests.task_failures import task_failures
from tests.waiting import until
from tests.workflow.plan.test_approval import asked, decide
from tests.workflow.runs import Handle, Lab, failure, is_answered, search_attribute, status_of
from worker_main import serving

RUNS = [2, pytest.param(9, marks=pytest.mark.long)]
LOOK = tools(("lookup", {"query": "pears"}))
LOST = {
    "unmounted": "has no id, the run uses the store {own_id}",
    "swapped": ", the run uses the store {own_id}",
    "emptied": "has no id, the run uses the store {own_id}",
    "restored": "has no object '",
}
"""Ways to lose a store, with what a run says of it."""
OpenRuns = list[tuple[Lab, Handle]]
SHAPE = plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t1"]})


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets what waits for the store look again after half a second."""
    monkeypatch.setattr(limits, "STORE_RETRY_MAX", timedelta(seconds=0.5))
    monkeypatch.setattr(limits, "STORE_WATCH_MAX", timedelta(seconds=0.5))


class Disk:
    """The directory of a store, which can be away: then its mount point is an empty directory."""

    def __init__(self, root: Path) -> None:
        self.mount = root / "store"
        self._root = root

    def unmount(self) -> None:
        """Takes the store away."""
        self.mount.rename(self._root / "away")
        self.mount.mkdir()

    async def swap(self, client: Client) -> None:
        """Puts another store in its place, which other runs have used."""
        self.mount.rename(self._root / "away")
        await (await store_of(client, self.mount)).begin()

    async def empty(self, client: Client) -> None:
        """Leaves only the folders of the store, as one that was emptied has."""
        self.mount.rename(self._root / "away")
        (await store_of(client, self.mount)).url  # noqa: B018 (opening it makes the folder)

    def back_up(self) -> None:
        """Copies the store as it is now."""
        shutil.copytree(self.mount, self._root / "backup")

    def restore(self) -> None:
        """Puts the copy in the place of the store."""
        self.mount.rename(self._root / "away")
        shutil.copytree(self._root / "backup", self.mount)

    async def lose(self, client: Client, how: str) -> None:
        """Takes the store away in that way."""
        if how == "unmounted":
            self.unmount()
        elif how == "swapped":
            await self.swap(client)
        else:
            await self.empty(client)

    def mount_again(self) -> None:
        """Brings the true store back."""
        if (self._root / "away").exists():
            shutil.rmtree(self.mount)
            (self._root / "away").rename(self.mount)

    @property
    def written(self) -> list[str]:
        """What was written into the place of the store, beside the id of another one."""
        return [str(path) for path in self.mount.rglob("*") if path.is_file() and path.name != "store-id"]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A disk of this test's own."""
    return Disk(tmp_path)


@asynccontextmanager
async def at_work(client: Client, settings: Settings, disk: Disk) -> AsyncIterator[None]:
    """Runs Workers that use the disk."""
    own = settings.model_copy(update={"artifacts_url": str(disk.mount)})
    async with serving(client, own):
        try:
            yield
        finally:
            disk.mount_again()  # calls that hold an answer would keep the Worker from ending


@pytest.fixture(scope="module")
async def alone() -> AsyncIterator[Client]:
    """A client of a server that only the Workers of one test at a time serve."""
    async with own_server() as client:
        yield client


async def waits_for_store(handle: Handle) -> bool:
    """True if a run shows that it waits for its store."""
    return (await status_of(handle)).flags.waiting_store


def store_wait(status: Status) -> str:
    """Returns what the run says of its wait for the store."""
    (words,) = [wait.prompt_preview for wait in status.waiting if wait.kind == "store"]
    return words


async def lose(disk: Disk, handle: Handle, go: asyncio.Event | None = None) -> None:
    """Unmounts the store of a run, lets the call that it waits for be answered, and waits until it has noticed."""
    disk.unmount()
    if go is not None:
        go.set()
    await until(lambda: waits_for_store(handle))


async def is_cancelled(handle: Handle) -> bool:
    """True if the run is closed as cancelled."""
    return (await handle.describe()).status is WorkflowExecutionStatus.CANCELED


async def cancel(handle: Handle) -> None:
    """Cancels a run, and waits until it is closed."""
    await handle.cancel()
    await until(lambda: is_cancelled(handle), 30)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a run that closes wait for its store for two seconds."""
    monkeypatch.setattr(limits, "CLOSING_PATIENCE", timedelta(seconds=2))


def turns(go: asyncio.Event) -> Callable[[Step], Reply]:
    """A look-up, then a finding: the second turn of each subtask is answered when `go` is set."""
    found = text("found it\n\nConfidence: 0.8\nLimitations: none")
    return lambda step: LOOK if step.number == 1 else when(go, found)


async def begun(lab: Lab, count: int, client: Client, disk: Disk, go: asyncio.Event) -> OpenRuns:
    """Returns so many open runs whose agents are in their first and second turns; the backup is of before these."""
    labs = [lab.on(client).named(f"{lab.run_id}-{number}") for number in range(count)]
    for own in labs:
        own.play(script(SHAPE, dict.fromkeys(("t1", "t2", "t3"), turns(go)), answer()))
    handles = [await own.start(approve_plan=True) for own in labs]
    for handle in handles:
        await asked(handle)
    disk.back_up()
    for handle in handles:
        await decide(handle, 1, "approve")
    await until(lambda: all("t1/1/turn.1" in own.steps for own in labs), 60)
    return list(zip(labs, handles, strict=True))


async def paused(open_runs: OpenRuns, go: asyncio.Event) -> None:
    """Pauses the runs, whose calls in flight are answered and stored."""
    await until(lambda: all({"t1/1/turn.2", "t2/1/turn.2"} <= set(own.steps) for own, _ in open_runs), 60)
    for _, handle in open_runs:
        await handle.execute_update("pause", {})
    go.set()
    for own, _ in open_runs:
        await until(lambda own=own: is_answered(own.client, own.run_id), 60)


async def all_wait(open_runs: OpenRuns, words: str) -> None:
    """Waits until all runs show that they wait for their store, with these words on it."""
    for _, handle in open_runs:
        await until(lambda handle=handle: waits_for_store(handle), 60)
        assert words in store_wait(await status_of(handle))
        assert await search_attribute(handle, "SupervisorWaiting") == "store"


async def all_complete(open_runs: OpenRuns) -> None:
    """Waits until all runs have completed, each with the calls of a run that lost nothing."""
    ends = asyncio.gather(*(handle.result() for _, handle in open_runs))
    results = await asyncio.wait_for(ends, 60)
    assert {(result.status, result.usage.model_calls) for result in results} == {("completed", 8)}


def nothing_is_paid_twice(open_runs: OpenRuns) -> bool:
    """True if no call of the runs was sent again after its answer."""
    return not any(own.repeated for own, _ in open_runs)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", RUNS)
@pytest.mark.parametrize("how", ["unmounted", "swapped", "emptied"])
async def test_runs_wait_for_a_lost_store_and_go_on_when_it_is_back(
    lab: Lab, settings: Settings, disk: Disk, alone: Client, how: str, count: int
) -> None:
    go = asyncio.Event()
    async with at_work(alone, settings, disk):
        open_runs = await begun(lab, count, alone, disk, go)
        own_id = await (await store_of(alone, disk.mount)).identity()
        await disk.lose(alone, how)
        go.set()  # the answers that come now can't be stored, and no call can be made
        await all_wait(open_runs, LOST[how].format(own_id=own_id))
        assert disk.written == []
        assert nothing_is_paid_twice(open_runs)
        disk.mount_again()
        await all_complete(open_runs)
    assert nothing_is_paid_twice(open_runs)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", RUNS)
async def test_runs_wait_for_objects_that_a_backup_lacks_and_go_on_when_they_are_back(
    lab: Lab, settings: Settings, disk: Disk, alone: Client, count: int
) -> None:
    """A new Worker misses them: those that the old one has read it still knows."""
    go = asyncio.Event()
    async with at_work(alone, settings, disk):
        open_runs = await begun(lab, count, alone, disk, go)
        await paused(open_runs, go)
    disk.restore()
    async with at_work(alone, settings, disk):
        for _, handle in open_runs:
            await handle.execute_update("resume", {"request_id": "again"})
        await all_wait(open_runs, LOST["restored"])
        assert nothing_is_paid_twice(open_runs)
        disk.mount_again()
        await all_complete(open_runs)
    assert nothing_is_paid_twice(open_runs)


@pytest.mark.timeout(120)
async def test_the_clock_stands_still_while_the_store_is_away(
    lab: Lab, settings: Settings, disk: Disk, alone: Client
) -> None:
    go = asyncio.Event()
    lab.play(script(plan({"id": "t1"}), {"t1": turns(go)}))
    async with at_work(alone, settings, disk):
        handle = await lab.on(alone).start(deadline="PT15S")
        await until(lab.sent("t1/1/turn.2"))
        await lose(disk, handle, go)
        deadline_at = datetime.fromisoformat((await status_of(handle)).deadline_at)
        await until(lambda: datetime.now(UTC) > deadline_at + timedelta(seconds=2), 40)
        disk.mount_again()
        result = await handle.result()
    assert (result.status, result.gaps) == ("completed", [])
    assert lab.repeated == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.timeout(120)
async def test_a_cancelled_run_closes_without_its_store(
    lab: Lab, settings: Settings, disk: Disk, alone: Client
) -> None:
    go = asyncio.Event()
    lab.play(script(plan({"id": "t1"}), {"t1": turns(go)}))
    async with at_work(alone, settings, disk):
        handle = await lab.on(alone).start()
        await until(lab.sent("t1/1/turn.2"))
        await lose(disk, handle, go)
        await cancel(handle)
        assert (await (await handle.describe()).memo())["partial"]["ref"] is None
        history = await handle.fetch_history()
        failures = list(task_failures(history.events))
        assert failures == [], "nothing follows the command that closes a run"
        assert disk.written == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.timeout(120)
async def test_a_run_whose_answer_cannot_be_stored_waits_and_a_cancel_closes_it(
    lab: Lab, settings: Settings, disk: Disk, alone: Client
) -> None:
    go = asyncio.Event()
    lab.play(script(plan({"id": "t1"}), answer_reply=when(go, answer())))
    async with at_work(alone, settings, disk):
        handle = await lab.on(alone).start()
        await until(lab.sent("synthesis.1"))
        await lose(disk, handle, go)
        await cancel(handle)
        assert await search_attribute(handle, "SupervisorStatus") == "cancelled"


@pytest.mark.usefixtures("impatient")
@pytest.mark.timeout(120)
async def test_a_failed_run_whose_end_cannot_be_stored_waits_and_a_cancel_closes_it_as_failed(
    lab: Lab, settings: Settings, disk: Disk, alone: Client
) -> None:
    lab.play(script(plan({"id": "t1"})))
    async with at_work(alone, settings, disk):
        handle = await lab.on(alone).start(approve_plan=True)

        async def asks() -> bool:
            return (await status_of(handle)).flags.waiting_person

        await until(asks)
        disk.unmount()
        await handle.execute_update("decide_plan", {"revision": 1, "decision": "reject"})
        await until(lambda: waits_for_store(handle))
        await handle.cancel()
        error = await asyncio.wait_for(failure(handle), 30)
        assert error.type == "PlanRejected"
        assert await search_attribute(handle, "SupervisorStatus") == "failed"
        assert disk.written == []


async def test_a_store_that_nobody_used_yet_gets_its_id_from_a_run_and_from_no_worker(
    lab: Lab, settings: Settings, disk: Disk, alone: Client
) -> None:
    lab.play(script(plan({"id": "t1"})))
    async with at_work(alone, settings, disk):
        store = await store_of(alone, disk.mount)
        assert await store.identity() is None
        assert (await lab.on(alone).run()).status == "completed"
        assert await open_store(store.url).identity() is not None
