"""The toolbox: a role's rights, arguments, and everything that can go wrong inside a tool."""

import asyncio
from datetime import date, timedelta
from typing import Any

import pytest
from pydantic import Field

from activities.store.artifacts import ArtifactUnavailable
from activities.teams.toolbox import Toolbox, ToolRun
from activities.tools.tool import Arguments, NewArtifact, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.contract.team import Role


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
    [({"count": 0}, "count: "), ({"txt": "x"}, "txt: "), ([], "Wrong arguments: Input should be")],
)
async def test_wrong_arguments_name_field_and_problem(arguments: object, problem: str) -> None:
    ran = await call(never, arguments)
    assert ran.is_error
    assert problem in ran.text
    assert len(ran.text) < 400


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


async def test_a_store_that_is_away_is_no_result_of_a_tool() -> None:
    async def fail(arguments: Anything, context: ToolContext) -> ToolOutput:
        raise ArtifactUnavailable("away")

    with pytest.raises(ArtifactUnavailable):
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("a\x00b\x1b[31mc\ud800", "abc\ufffd"), (b"\xff\x00ok", "\ufffdok"), ("", "")],
)
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
