"""Tools of an author's own: mistakes found when the file is loaded, and calls off the Worker's loop."""

import asyncio
import re
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.teams import own_tools
from activities.teams.own_tools import OwnTools
from activities.teams.team_files import TeamError, TeamFiles
from activities.teams.toolbox import Toolbox, ToolRun
from activities.tools.tool import ToolContext
from supervision.base import limits
from supervision.contract.team import Role
from tests.activity.teams.test_team_files import write
from tests.waiting import until

HEAD = """
import asyncio, contextvars, sqlite3, threading, time
from typing import Any
from pydantic import BaseModel
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput

class City(Arguments):
    city: str = "Oslo"
"""
TOOLS = """
async def quick(arguments, context) -> str:
    return threading.current_thread().name

async def block(arguments, context) -> str:
    threading.release.wait()
    return "late"

def plain(arguments, context) -> str:
    threading.release.wait()
    return "late"

async def wait(arguments, context) -> str:
    try:
        await asyncio.Event().wait()
    finally:
        threading.ended.set()

async def span(arguments, context) -> str:
    return threading.span.get()

connection = sqlite3.connect(":memory:")

async def select(arguments, context) -> str:
    return str(connection.execute("SELECT 1").fetchone())

gate = asyncio.Barrier(5)  # passes only if all are there at the same time

async def meet(arguments, context) -> str:
    await gate.wait()
    return "met"

async def fail(arguments, context) -> str:
    raise threading.error

TOOLS = [Tool(run.__name__, "d", City, run) for run in (quick, block, plain, wait, span, select, meet, fail)]
"""


def team(folder: Path, code: str, *tools: str) -> TeamFiles:
    """A team with these tools of its author's own, all of them called `weather` unless named."""
    listed = ", ".join(tools) or 'Tool("weather", "Tells.", City, weather)'
    write(folder, tool="weather", tools=f"{HEAD}\n{code}\nTOOLS = [{listed}]\n")
    return TeamFiles([folder])


async def weather(files: TeamFiles, arguments: dict[str, Any]) -> ToolRun:
    loaded = await files.load("crew")
    return await loaded.toolbox.run(loaded.team.roles[0], "weather", arguments, ToolContext())


class Crew:
    """The tools above, opened."""

    def __init__(self, folder: Path) -> None:
        self.source = OwnTools(write(folder, tools=HEAD + TOOLS) / "tools.py")
        self.box = Toolbox([])

    async def call(self, name: str) -> ToolRun:
        if not self.box.names():
            self.box = Toolbox(await self.source.open(), [self.source])
        role = Role(name="tester", description="d", system_prompt="s", tools=self.box.names())
        return await self.box.run(role, name, {}, ToolContext())


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crew:
    monkeypatch.setattr(threading, "release", threading.Event(), raising=False)
    return Crew(tmp_path)


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOOL_TIMEOUT", timedelta(milliseconds=200))
    monkeypatch.setattr(own_tools, "_PATIENCE", timedelta(milliseconds=100))


LATE = "The tool did not answer within 0.2 s."


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("async def weather(city): ...", "must take (arguments, context), it takes (city)"),
        ("weather = 5", "its function must be callable, it is of type int"),
        ("class City(Arguments):\n    x: type(lambda: 0)\nasync def weather(a, b): ...", "tools.py"),
    ],
)
async def test_a_mistake_is_found_when_the_team_is_loaded(tmp_path: Path, code: str, problem: str) -> None:
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        await team(tmp_path, code).load("crew")
    assert "tools.py" in error.value.message


async def test_a_tool_runs_in_its_teams_thread_with_what_its_module_opened(crew: Crew) -> None:
    assert (await crew.call("quick")).text == "team-crew"
    assert (await crew.call("select")).text == "(1,)"


@pytest.mark.usefixtures("short_times")
async def test_a_waiting_tool_ends_at_its_timeout(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(threading, "ended", ended, raising=False)
    assert (await crew.call("wait")).text == LATE
    await until(ended.is_set)
    assert (await crew.call("quick")).text == "team-crew"


@pytest.mark.usefixtures("short_times")
async def test_a_tool_that_blocks_leaves_the_workers_loop_free_and_its_thread_is_replaced(
    crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = asyncio.create_task(crew.call("block"))
    ticks = 0
    while not blocked.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 3
    assert blocked.result().text == LATE

    async def answers() -> bool:
        return (await crew.call("quick")).text == "team-crew"

    await until(answers)
    assert "block their thread, which is replaced" in caplog.text
    assert "release.wait()" in caplog.text
    threading.release.set()  # type: ignore[attr-defined]


async def test_a_closed_source_ends_its_thread_after_the_calls_in_flight(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TOOL_TIMEOUT", timedelta(seconds=2))
    await crew.call("quick")
    waiting = asyncio.gather(*(crew.call("meet") for _ in range(4)))
    gate = sys.modules["supervisor_team_crew_tools"].gate
    await until(lambda: gate.n_waiting == 4)
    await crew.box.close()
    assert (await crew.call("meet")).text == "met"
    assert {ran.text for ran in await waiting} == {"met"}
    thread = crew.source._thread
    assert thread is not None
    await until(lambda: not thread._thread.is_alive())
