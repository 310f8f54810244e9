"""Tools of an author's own: off the event loop, ended at their timeout, their thread replaced if it hangs."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.teams.team_files import TeamFiles
from activities.teams.team_thread import TeamThread
from activities.teams.toolbox import Toolbox, ToolRun
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput
from supervision.base import limits
from supervision.contract.team import Role
from tests.waiting import until

ROLE = Role(name="tester", description="Tests.", system_prompt="Test.", tools=["try"])


TEAM = """
name = "crew"
generalist = "hand"
[[roles]]
name = "hand"
description = "Does."
system_prompt = "Do."
tools = ["hang", "greet"]
"""
TOOLS = """
import threading
from activities.tools.tool import Arguments, Tool

async def hang(arguments, context) -> str:
    threading.release.wait()

async def greet(arguments, context) -> str:
    return "hello"

TOOLS = [Tool("hang", "Hangs.", Arguments, hang), Tool("greet", "Greets.", Arguments, greet)]
"""


class Nothing(Arguments):
    pass


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOOL_TIMEOUT", timedelta(milliseconds=200))
    monkeypatch.setattr(limits, "TEAM_THREAD_PATIENCE", timedelta(milliseconds=100))


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


async def test_a_tool_that_blocks_leaves_the_workers_loop_free_and_its_thread_serves_again(thread: TeamThread) -> None:
    release = threading.Event()

    async def block(arguments: Nothing, context: ToolContext) -> ToolOutput:
        release.wait()
        return ToolOutput("late")

    blocked = asyncio.create_task(call(thread, block))
    ticks = 0
    while not blocked.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 3
    assert blocked.result().text == "the tool did not answer within 0.2 s"
    await until(lambda: thread.stuck)
    assert (await call(thread, quick)).is_error
    release.set()
    await until(lambda: thread.serves)
    assert (await call(thread, quick)).text == "team-crew"


async def test_a_plain_function_that_blocks_holds_up_no_other_call(thread: TeamThread) -> None:
    release = threading.Event()

    def block(arguments: Nothing, context: ToolContext) -> ToolOutput:
        release.wait()
        return ToolOutput("late")

    assert (await call(thread, block)).text == "the tool did not answer within 0.2 s"
    assert (await call(thread, quick)).text == "team-crew"
    assert thread.serves
    release.set()


async def test_a_team_whose_thread_hangs_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "crew").mkdir(mode=0o700)
    (tmp_path / "crew" / "team.toml").write_text(TEAM)
    (tmp_path / "crew" / "tools.py").write_text(TOOLS)
    release = threading.Event()
    monkeypatch.setattr(threading, "release", release, raising=False)
    files = TeamFiles([tmp_path])

    async def run(name: str) -> ToolRun:
        loaded = files.load("crew")
        return await loaded.toolbox.run(loaded.team.roles[0], name, {}, ToolContext())

    assert (await run("hang")).text == "the tool did not answer within 0.2 s"

    async def answers() -> bool:
        return (await run("greet")).text == "hello"

    await until(answers)
    assert "team-crew hangs" in caplog.text
    assert "release.wait()" in caplog.text
    release.set()


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
