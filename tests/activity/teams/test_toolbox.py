"""The toolbox: a role's rights, arguments, tools of an author's own, and everything that can go wrong inside a tool."""

import asyncio
import re
import sys
import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from activities.bounded.child_processes import NotStarted
from activities.store.artifacts import ArtifactUnavailable
from activities.teams import own_tools
from activities.teams.own_tools import OwnTools
from activities.teams.team_files import TeamError, TeamFiles
from activities.teams.toolbox import Toolbox, ToolRun
from activities.tools.plain_tools import PLAIN
from activities.tools.tool import Arguments, NewArtifact, Tool, ToolContext, ToolMisuse, ToolOutput
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.team import Role
from tests.activity.teams.test_team_files import write
from tests.waiting import until


class Anything(Arguments):
    text: str = ""
    count: int = Field(default=1, ge=1)


def role(*tools: str) -> Role:
    return Role(name="tester", description="Tests.", system_prompt="Test.", tools=list(tools))


def toolbox(run: Any, **settings: Any) -> Toolbox:
    return Toolbox([Tool("try", "Tries.", Anything, run, **settings)])


async def never(arguments: Anything, context: ToolContext) -> ToolOutput:
    raise AssertionError


async def call(run: Any, arguments: Any = None, **settings: Any) -> ToolRun:
    given = {} if arguments is None else arguments
    return await toolbox(run, **settings).run(role("try"), "try", given, ToolContext())


@pytest.mark.parametrize("name", ["", "TRY", "../try"])
async def test_an_unknown_name_is_refused_with_the_roles_tools(name: str) -> None:
    ran = await toolbox(never).run(role("try"), name, {}, ToolContext())
    assert ran.is_error
    assert ran.text.endswith("is not available to this role. Its tools are: try")
    assert len(ran.text) < 300


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({"count": 0}, "count: "), ({"txt": "x"}, "txt: "), ([], "Wrong arguments: must be an object")],
)
async def test_wrong_arguments_name_field_and_problem(arguments: object, problem: str) -> None:
    ran = await call(never, arguments)
    assert ran.is_error
    assert problem in ran.text
    assert len(ran.text) < 400


async def test_arguments_that_are_slightly_wrong_are_read_where_nothing_is_changed_by_the_call() -> None:
    async def shows(arguments: Anything, context: ToolContext) -> ToolOutput:
        return ToolOutput(f"{arguments.text}{arguments.count}")

    given = {"text": None, "count": "2 pears"}
    assert (await call(shows, given)).text == "2"
    assert (await call(never, given, effects="write", approve="never")).text.startswith("Wrong arguments: text: ")


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolMisuse("ask for a city"), "ask for a city"),
        (ValueError("bad\nvalue\x1b[31m"), "ValueError: bad value"),
        (ExceptionGroup("many", [ValueError("a")]), "ExceptionGroup: many"),
        (SystemExit(3), "SystemExit: 3"),
        (SyntaxError("bad", ("expression", 1, 3, "1 +", 1, 3)), "SyntaxError: bad"),
        (Odd(), f"{__name__}.Odd: <exception str() failed>"),
        (asyncio.CancelledError(), "The tool ended the call without a result."),
    ],
)
async def test_whatever_a_tool_raises_is_an_error_result(error: BaseException, text: str) -> None:
    async def fail(arguments: Anything, context: ToolContext) -> ToolOutput:
        raise error

    ran = await call(fail)
    assert ran.is_error
    assert ran.text.startswith(text)
    assert "Traceback" not in ran.text
    assert "\x1b" not in ran.text


@pytest.mark.parametrize("error", [ArtifactUnavailable("away"), NotStarted("busy")])
async def test_a_failure_of_the_surroundings_is_no_result_of_a_tool(error: Exception) -> None:
    async def fail(arguments: Anything, context: ToolContext) -> ToolOutput:
        raise error

    with pytest.raises(type(error)):
        await call(fail)


async def test_a_tool_that_resists_its_timeout_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TOOL_TIMEOUT", timedelta(milliseconds=50))
    release = asyncio.Event()

    async def resist(arguments: Anything, context: ToolContext) -> ToolOutput:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutput("late")

    assert (await asyncio.wait_for(call(resist), 5)).is_error
    release.set()


async def test_cancelling_the_caller_cancels_the_tool_and_propagates() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait(arguments: Anything, context: ToolContext) -> ToolOutput:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    task = asyncio.create_task(call(wait))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)


@pytest.mark.parametrize(("text", "shown"), [("plain", "plain"), ("a\x00b\x1b[31mc\ud800", "abc\ufffd"), ("", "")])
async def test_output_becomes_clean_text(text: Any, shown: str) -> None:
    async def give(arguments: Anything, context: ToolContext) -> ToolOutput:
        return ToolOutput(text, sources=["a\x1b[1mb\n" + "x" * 1000])

    ran = await call(give)
    assert (ran.text, ran.is_error) == (shown, False)
    assert ran.sources[0].startswith("ab x")
    assert len(ran.sources[0].encode()) <= 300


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (5, "5"),
        ({"city": "Łódź", "day": date(2026, 1, 2)}, '{"city": "Łódź", "day": "2026-01-02"}'),
        ([1, None], "[1, null]"),
        (
            None,
            "TypeError: a tool returns a ToolOutput, a text, a number, a list or a dict; this one returned NoneType",
        ),
    ],
)
async def test_texts_numbers_lists_and_dicts_are_outputs(output: object, text: str) -> None:
    async def give(arguments: Anything, context: ToolContext) -> Any:
        return output

    ran = await call(give)
    assert (ran.text, ran.is_error) == (text, text.startswith("TypeError"))


async def test_artifacts_keep_their_content_and_lose_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    async def give(arguments: Anything, context: ToolContext) -> ToolOutput:
        return ToolOutput("x", artifacts=[NewArtifact("../..\\etc/pass\x00wd", "text/plain", b"123")])

    assert (await call(give)).artifacts == [NewArtifact("passwd", "text/plain", b"123")]
    monkeypatch.setattr(limits, "ARTIFACT_BYTES", 2)
    ran = await call(give)
    assert ran.is_error
    assert "3 bytes" in ran.text


@pytest.mark.parametrize("names", [["a", "a"], ["a/b"]])
def test_names_that_are_taken_or_impossible_are_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="name"):
        Toolbox(Tool(name, "x", Anything, never) for name in names)


HEAD = """
import asyncio, sqlite3, threading
from activities.tools.tool import Arguments, Tool

class City(Arguments):
    city: str = "Oslo"
"""
TOOLS = """
async def quick(arguments, context) -> str:
    return threading.current_thread().name

async def block(arguments, context) -> str:
    threading.release.wait()
    return "late"

async def wait(arguments, context) -> str:
    try:
        await asyncio.Event().wait()
    finally:
        threading.ended.set()

connection = sqlite3.connect(":memory:")

async def select(arguments, context) -> str:
    return str(connection.execute("SELECT 1").fetchone())

gate = asyncio.Barrier(5)  # passes only if all are there at the same time

async def meet(arguments, context) -> str:
    await gate.wait()
    return "met"

TOOLS = [Tool(run.__name__, "d", City, run) for run in (quick, block, wait, select, meet)]
"""


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
        ("async def weather(city): ...", "must take (arguments, context)"),
        ("weather = 5", "must take (arguments, context)"),
        ("class City(Arguments):\n    x: type(lambda: 0)\nasync def weather(a, b): ...", "tools.py"),
    ],
)
async def test_a_mistake_is_found_when_the_team_is_loaded(tmp_path: Path, code: str, problem: str) -> None:
    listed = 'TOOLS = [Tool("weather", "Tells.", City, weather)]\n'
    write(tmp_path, tool="weather", tools=f"{HEAD}\n{code}\n{listed}")
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        await TeamFiles([tmp_path]).load("crew")
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
    before = set(threading.enumerate())
    await crew.call("quick")
    [former] = {each for each in threading.enumerate() if each.name == "team-crew"} - before
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
    assert "imported again in another thread" in caplog.text
    threading.release.set()  # type: ignore[attr-defined]
    crew.box, crew.source = Toolbox([]), OwnTools(Path())
    await until(lambda: not former.is_alive())


async def test_a_thread_ends_after_the_last_call_once_nothing_has_its_tools(crew: Crew) -> None:
    before = set(threading.enumerate())
    await crew.call("quick")
    [thread] = {each for each in threading.enumerate() if each.name == "team-crew"} - before
    waiting = asyncio.gather(*(crew.call("meet") for _ in range(4)))
    gate = sys.modules["supervisor_team_crew_tools"].gate
    await until(lambda: gate.n_waiting == 4)
    loop = gate._cond._loop
    crew.box, crew.source = Toolbox([]), OwnTools(Path())
    asyncio.run_coroutine_threadsafe(gate.wait(), loop)
    assert {ran.text for ran in await waiting} == {"met"}
    await until(lambda: not thread.is_alive())


async def test_the_tool_for_attachments_is_offered_where_there_are_some() -> None:
    own = Tool("own", "Reads.", Anything, never, reads_attachments=True)
    reads = PLAIN["attachment"]
    box = Toolbox([reads, own])
    names = [reads.name, own.name]
    assert [tool["name"] for tool in box.definitions(names)] == names
    assert [tool["name"] for tool in box.definitions(names, attachments=False)] == [own.name]
