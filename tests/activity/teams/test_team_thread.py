"""Tools of an author's own: off the event loop, ended at their timeout, left behind when nothing else helps."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

from activities.teams import team_thread
from activities.teams.team_thread import TeamThread
from activities.teams.toolbox import Toolbox, ToolRun
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput
from supervision import limits
from supervision.contract.team import Role
from tests.waiting import until

ROLE = Role(name="tester", description="Tests.", system_prompt="Test.", tools=["try"])


class Nothing(Arguments):
    pass


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOOL_TIMEOUT", timedelta(milliseconds=200))
    monkeypatch.setattr(limits, "TEAM_THREAD_PATIENCE", timedelta(milliseconds=100))
    monkeypatch.setattr(team_thread, "_left_behind", [])


@pytest.fixture
def thread() -> Iterator[TeamThread]:
    serving = TeamThread("crew")
    yield serving
    serving.end()


async def call(thread: TeamThread, run: Any) -> ToolRun:
    box = Toolbox([thread.own(Tool("try", "Tries.", Nothing, run))])
    return await box.run(ROLE, "try", {}, ToolContext())


async def quick(arguments: Nothing, context: ToolContext) -> ToolOutput:
    return ToolOutput(threading.current_thread().name)


async def test_a_tool_runs_in_its_teams_thread(thread: TeamThread) -> None:
    assert (await call(thread, quick)).text == "team-crew"


async def test_a_tool_sees_the_context_of_its_caller(thread: TeamThread) -> None:
    span: ContextVar[str] = ContextVar("span")
    span.set("mine")

    async def look(arguments: Nothing, context: ToolContext) -> ToolOutput:
        return ToolOutput(span.get())

    assert (await call(thread, look)).text == "mine"


async def test_what_a_module_opened_serves_its_tools(thread: TeamThread) -> None:
    connection = await asyncio.wrap_future(thread.begin(lambda: sqlite3.connect(":memory:")))

    async def select(arguments: Nothing, context: ToolContext) -> ToolOutput:
        return ToolOutput(str(connection.execute("SELECT 1").fetchone()))

    assert (await call(thread, select)).text == "(1,)"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (StopAsyncIteration(), "StopAsyncIteration: "),
        (asyncio.CancelledError(), "the tool gave up"),
    ],
)
async def test_whatever_it_raises_is_an_error_result(thread: TeamThread, error: BaseException, text: str) -> None:
    async def fail(arguments: Nothing, context: ToolContext) -> ToolOutput:
        raise error

    ran = await call(thread, fail)
    assert (ran.text, ran.is_error) == (text, True)
    assert (await call(thread, quick)).text == "team-crew"


async def test_a_waiting_tool_ends_at_its_timeout(thread: TeamThread) -> None:
    ended = threading.Event()

    async def hang(arguments: Nothing, context: ToolContext) -> ToolOutput:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    assert (await call(thread, hang)).text == "the tool did not answer within 0.2 s"
    await until(ended.is_set)
    assert (await call(thread, quick)).text == "team-crew"


async def test_a_busy_loop_is_interrupted_and_the_workers_loop_goes_on(thread: TeamThread) -> None:
    async def spin(arguments: Nothing, context: ToolContext) -> ToolOutput:
        while True:
            pass

    spinning = asyncio.create_task(call(thread, spin))
    ticks = 0
    while not spinning.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 3
    assert spinning.result().text == "the tool did not answer within 0.2 s"

    async def answers() -> bool:
        return (await call(thread, quick)).text == "team-crew"

    await until(answers)
    assert thread.serves


async def test_a_thread_that_cannot_be_interrupted_is_left_behind_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "STUCK_THREADS", 1)
    release = threading.Event()

    async def block(arguments: Nothing, context: ToolContext) -> ToolOutput:
        release.wait()
        return ToolOutput("late")

    thread = TeamThread("crew")
    assert (await call(thread, block)).text == "the tool did not answer within 0.2 s"
    await until(lambda: thread.stuck)
    assert (await call(thread, quick)).is_error
    with pytest.raises(RuntimeError, match="1 threads of tools never ended: restart this Worker"):
        TeamThread("other")
    release.set()

    async def ended() -> bool:
        try:
            TeamThread("other").end()
        except RuntimeError:
            return False
        return True

    await until(ended)


async def test_calls_of_a_team_run_side_by_side(thread: TeamThread) -> None:
    gate = asyncio.Barrier(5)  # passes only if all are there at the same time

    async def meet(arguments: Nothing, context: ToolContext) -> ToolOutput:
        await gate.wait()
        return ToolOutput("met")

    assert {ran.text for ran in await asyncio.gather(*(call(thread, meet) for _ in range(5)))} == {"met"}


def test_a_thread_ends_with_its_work() -> None:
    before = threading.active_count()
    for _ in range(20):
        thread = TeamThread("brief")
        work = thread.begin(lambda: 1)
        thread.end()
        assert work.result(10) == 1
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before
