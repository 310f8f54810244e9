"""Turns of owners and kinds of work in the places of a process. Events stand for child processes."""

import asyncio
import contextlib
import gc

import psutil

from activities.bounded.child_processes import ChildProcesses
from activities.bounded.fair_pool import CallLine, FairPool
from tests.activity.bounded import hostile
from tests.activity.bounded.test_child_processes import LONG, MEMORY


class Counter:
    """Questions that hold their places until they are let go, in the order in which they were admitted."""

    def __init__(self) -> None:
        self.admitted: list[str] = []
        self._may_go: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, line: CallLine, *questions: str) -> None:
        """The part of a name before the dot is the owner."""
        for name in questions:
            self._may_go[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._hold(line, name))
        await asyncio.sleep(0)

    async def _hold(self, line: CallLine, name: str) -> None:
        async with line.place(name.partition(".")[0]):
            self.admitted.append(name)
            await self._may_go[name].wait()

    async def let_go(self, *questions: str) -> None:
        for name in questions:
            self._may_go[name].set()
            await self._tasks[name]
        await asyncio.sleep(0)

    async def stop(self, *questions: str) -> None:
        """Cancels questions, wherever they are."""
        for name in questions:
            self._tasks[name].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*(self._tasks[name] for name in questions))


async def spend(line: CallLine, owner: str, seconds: float) -> None:
    async with line.place(owner):
        await asyncio.sleep(seconds)


async def test_one_runs_many_files_keep_no_other_run_waiting() -> None:
    counter, line = Counter(), FairPool(4, 1).line(2)
    wide = [f"wide.{n}" for n in range(600)]
    await counter.ask(line, *wide)
    assert counter.admitted == ["wide.0"]
    await counter.ask(line, "honest.1")
    assert counter.admitted == ["wide.0", "honest.1"]
    await counter.stop(*wide, "honest.1")


async def test_many_runs_of_one_kind_leave_places_to_other_kinds() -> None:
    pool = FairPool(4, 1)
    counter, sql, files = Counter(), pool.line(3), pool.line(2)
    queries = [f"run{n}.1" for n in range(200)]
    await counter.ask(sql, *queries)
    assert counter.admitted == queries[:3]
    await counter.ask(files, "a.1", "b.1")
    assert counter.admitted == [*queries[:3], "a.1"]
    await counter.let_go("run0.1")  # the line that holds fewest is next
    assert counter.admitted == [*queries[:3], "a.1", "b.1"]
    await counter.stop(*queries, "a.1", "b.1")


async def test_who_used_fewest_seconds_lately_is_next_however_late_it_came() -> None:
    counter, line = Counter(), FairPool(1, 1).line(1)
    await spend(line, "slow", 0.05)
    await counter.ask(line, "other.1", "slow.1", "slow.2", "new.1", "new.2")
    await counter.let_go("other.1")
    await counter.let_go("new.1")
    assert counter.admitted == ["other.1", "new.1", "new.2"]
    await counter.let_go("new.2")
    assert counter.admitted[3:] == ["slow.1"]
    await counter.stop("slow.1", "slow.2")


async def test_questions_that_are_cancelled_leave_no_place_behind() -> None:
    pool = FairPool(1, 1)
    counter, line = Counter(), pool.line(1)
    for n in range(20):
        first, second, third = (f"{owner}{n}.1" for owner in "abc")
        await counter.ask(line, first, second, third)
        await counter.stop(first, second) if n % 2 else await counter.stop(second, first)
        await counter.let_go(third)
    await asyncio.wait_for(spend(line, "last", 0), 10)


async def test_processes_that_wait_for_a_question_are_few() -> None:
    pool, before = FairPool(4, resting=2), {child.pid for child in psutil.Process().children()}
    kinds = [ChildProcesses(hostile.__name__, pool.line(1), MEMORY) for _ in range(4)]
    for kind in kinds:
        assert await kind.call("run", LONG, "echo", 1) == 1
    gc.collect()
    assert len({child.pid for child in psutil.Process().children()} - before) == 2
    assert await kinds[0].call("run", LONG, "echo", 2) == 2  # it begins anew
