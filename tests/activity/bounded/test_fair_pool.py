"""Turns at the processes of a pool: one question of an owner at a time, first come first served, patience."""

import asyncio
import gc
import json
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psutil
import pytest

from activities.bounded.fair_pool import FairPool
from activities.bounded.line_process import LineProcess
from supervision import limits
from tests.waiting import until

SETUP = {"module": "json", "seconds": 5, "address": 1 << 29}


class Hall:
    """Processes that answer a question once it is let go, in the order that the test wants."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.started = 0
        self._gates: dict[str, threading.Event] = {}

    def start(self) -> Any:
        self.started += 1
        return self

    def ask(self, line: bytes, seconds: float) -> dict[str, str]:
        question = json.loads(line)
        self.begun.append(question)
        self._gate(question).wait(10)
        return {"answer": question}

    def end(self) -> None:
        pass

    def let_go(self, *questions: str) -> None:
        for question in questions:
            self._gate(question).set()

    def _gate(self, question: str) -> threading.Event:
        return self._gates.setdefault(question, threading.Event())


@pytest.fixture
def hall() -> Hall:
    return Hall()


def asked(pool: FairPool, *questions: str) -> list["asyncio.Task[Any]"]:
    """Questions whose first letter is their owner."""
    return [asyncio.create_task(pool.ask(question[0], question, 5)) for question in questions]


def begun(hall: Hall, *questions: str) -> Callable[[], bool]:
    return lambda: sorted(hall.begun) == sorted(questions)


async def test_owners_take_turns_and_have_one_question_open(hall: Hall) -> None:
    pool = FairPool(hall.start, 2)
    tasks = asked(pool, "a1", "a2", "a3", "b1", "c1")
    await until(begun(hall, "a1", "b1"))
    hall.let_go("a1")
    await until(begun(hall, "a1", "b1", "c1"))
    hall.let_go("b1")
    await until(begun(hall, "a1", "b1", "c1", "a2"))
    hall.let_go("c1", "a2", "a3")
    assert [task["answer"] for task in await asyncio.gather(*tasks)] == ["a1", "a2", "a3", "b1", "c1"]
    assert hall.started == 2


async def test_who_waits_too_long_gets_a_further_process(hall: Hall) -> None:
    pool = FairPool(hall.start, 1, extra=1, patience=timedelta(milliseconds=50))
    tasks = asked(pool, "a1", "b1", "c1")
    await until(begun(hall, "a1", "b1"))
    hall.let_go("b1")
    await until(begun(hall, "a1", "b1", "c1"))
    hall.let_go("a1", "c1")
    await asyncio.gather(*tasks)


async def test_a_cancelled_question_keeps_its_slot_until_its_thread_is_free(hall: Hall) -> None:
    pool = FairPool(hall.start, 1)
    first, waiting, last = asked(pool, "a1", "b1", "c1")
    await until(begun(hall, "a1"))
    first.cancel()
    waiting.cancel()
    await asyncio.wait([first, waiting])
    assert hall.begun == ["a1"]
    hall.let_go("a1", "c1")
    assert (await last)["answer"] == "c1"
    assert hall.begun == ["a1", "c1"]


def test_a_process_that_nobody_uses_any_longer_ends() -> None:
    before = {child.pid for child in psutil.Process().children()}
    process: LineProcess | None = LineProcess("activities.bounded.run_bounded", SETUP)
    assert process is not None
    assert process.read(30) == {"ready": True}
    (child,) = [one for one in psutil.Process().children() if one.pid not in before]
    process = None
    gc.collect()
    assert not child.is_running()


def test_a_process_that_answers_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    process = LineProcess("activities.bounded.run_bounded", SETUP)
    assert process.read(30) == {"ready": True}
    assert process.ask(json.dumps(["loads", [json.dumps("x" * 100_000)]]).encode(), 30) == {"result": "x" * 100_000}
    monkeypatch.setattr(limits, "CHILD_REPLY_BYTES", 10_000)
    assert process.ask(json.dumps(["loads", [json.dumps("x" * 100_000)]]).encode(), 30) is None
