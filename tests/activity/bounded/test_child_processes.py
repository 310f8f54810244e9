"""Child processes: whatever a function does there, its caller gets an answer in time, and the next one, too."""

import asyncio
import gc
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from activities.bounded.child_processes import CHILD_REPLY_BYTES, BoundExceeded, ChildProcesses, Failed
from activities.bounded.fair_pool import FairPool
from tests.activity.bounded import hostile
from tests.waiting import until

MODULE = hostile.__name__
MEMORY = 1 << 27
SHORT, LONG = timedelta(milliseconds=400), timedelta(seconds=20)


@pytest.fixture
def one() -> ChildProcesses:
    return ChildProcesses(MODULE, FairPool(1, 1).line(1), MEMORY)


@pytest.fixture
async def two() -> ChildProcesses:
    """Two processes that serve already."""
    children = ChildProcesses(MODULE, FairPool(2, 2).line(2), MEMORY)
    await asyncio.gather(*(children.call(owner, LONG, "echo", 1) for owner in "ab"))
    return children


def processes() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("search", ["^(a+)+$", "a" * 50 + "!"]),
        ("hang", []),
        ("flood", []),
        ("leave", []),
        ("repeat", [CHILD_REPLY_BYTES * 2]),
    ],
)
async def test_what_never_ends_or_answers_is_ended_and_the_next_question_answered(
    one: ChildProcesses, function: str, arguments: list[Any]
) -> None:
    others = processes()
    await one.call("run", LONG, "echo", 1)
    served = processes() - others
    began = time.monotonic()
    with pytest.raises(BoundExceeded, match=r"longer than 0\.4 s|answer is longer|memory"):
        await one.call("run", SHORT, function, *arguments)
    assert time.monotonic() - began < LONG.total_seconds()
    assert await one.call("run", LONG, "echo", 2) == 2
    assert not served & processes()


async def test_a_process_left_behind_by_a_function_ends_with_its_own(one: ChildProcesses, tmp_path: Path) -> None:
    with pytest.raises(BoundExceeded):
        await one.call("run", timedelta(seconds=2), "fork", str(tmp_path))
    (left,) = tmp_path.iterdir()
    await until(lambda: not psutil.pid_exists(int(left.name)) or psutil.Process(int(left.name)).status() == "zombie")


async def test_memory_files_and_environment_are_bounded(
    one: ChildProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    with pytest.raises(BoundExceeded, match="more than 128 MiB of memory"):
        await one.call("run", LONG, "fill")
    assert "canary" not in str(await one.call("run", LONG, "environment"))
    with pytest.raises((BoundExceeded, Failed)):
        await one.call("run", LONG, "write", str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == ""


async def test_a_question_that_is_nested_too_deeply_is_not_sent(one: ChildProcesses) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BoundExceeded, match="nested too deeply"):
        await one.call("run", LONG, "echo", deep)


async def test_processes_end_with_their_pool() -> None:
    before = processes()
    children: ChildProcesses | None = ChildProcesses(MODULE, FairPool(1, 1).line(1), MEMORY)
    assert children is not None
    await children.call("run", LONG, "echo", 1)
    assert processes() - before
    children = None
    gc.collect()
    assert not processes() - before


class Hall:
    """Questions that are answered once they are let go; the first letter of each is its owner."""

    def __init__(self, children: ChildProcesses, folder: Path) -> None:
        self._children = children
        self._folder = folder

    def ask(self, *questions: str) -> list["asyncio.Task[Any]"]:
        call, folder = self._children.call, str(self._folder)
        return [asyncio.create_task(call(name[0], LONG, "hold", folder, name)) for name in questions]

    def let_go(self, *questions: str) -> None:
        for name in questions:
            (self._folder / f"{name}.go").mkdir()

    def begun(self, *questions: str) -> Callable[[], bool]:
        return lambda: {path.stem for path in self._folder.glob("*.begun")} == {*questions}


async def test_owners_take_turns_and_have_one_question_open(two: ChildProcesses, tmp_path: Path) -> None:
    hall = Hall(two, tmp_path)
    tasks = hall.ask("a1", "a2", "a3", "b1", "c1")
    await until(hall.begun("a1", "b1"))
    hall.let_go("a1")
    await until(hall.begun("a1", "b1", "c1"))
    hall.let_go("b1")
    await until(hall.begun("a1", "b1", "c1", "a2"))
    hall.let_go("c1", "a2", "a3")
    assert await asyncio.gather(*tasks) == ["a1", "a2", "a3", "b1", "c1"]


async def test_a_cancelled_question_ends_its_process_and_gives_its_turn_to_the_next(
    one: ChildProcesses, tmp_path: Path
) -> None:
    hall, others = Hall(one, tmp_path), processes()
    first, waiting, last = hall.ask("a1", "b1", "c1")
    await until(hall.begun("a1"))
    served = processes() - others
    first.cancel()
    waiting.cancel()
    await asyncio.wait([first, waiting])
    assert first.cancelled()
    assert not served & processes()
    hall.let_go("c1")
    assert await last == "c1"
