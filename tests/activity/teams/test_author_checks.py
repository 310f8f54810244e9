"""The mistakes of a tool's author, found when the team is loaded; and the forms that a tool may have."""

import re
from pathlib import Path
from typing import Any

import pytest

from activities.teams.team_definition import TeamError
from activities.teams.team_files import TeamFiles
from activities.teams.toolbox import ToolRun
from activities.tools.tool import ToolContext
from tests.activity.teams.test_team_files import write

HEAD = """
import threading, time
from typing import Any
from pydantic import BaseModel
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput

class City(Arguments):
    city: str
"""


def team(folder: Path, code: str, *tools: str) -> TeamFiles:
    """A team with these tools of its author's own, all of them called `weather` unless named."""
    listed = ", ".join(tools) or 'Tool("weather", "Tells.", City, weather)'
    write(folder, tool="weather", tools=f"{HEAD}\n{code}\nTOOLS = [{listed}]\n")
    return TeamFiles([folder])


async def call(files: TeamFiles, arguments: dict[str, Any]) -> ToolRun:
    loaded = files.load("crew")
    return await loaded.toolbox.run(loaded.team.roles[0], "weather", arguments, ToolContext())


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("async def weather(city): ...", "must take (arguments, context), it takes (city)"),
        ("async def weather(): ...", "must take (arguments, context), it takes ()"),
        ("async def weather(a, b, c): ...", "must take (arguments, context), it takes (a, b, c)"),
        ("async def weather(a, b) -> dict: ...", "must return a ToolOutput or a str, not dict"),
        ("async def weather(a, b) -> None: ...", "must return a ToolOutput or a str, not None"),
        ("def weather(a, b): yield 1", "must return its output at once, not yield it"),
        ("weather = 5", "its function must be callable, it is of type int"),
        ("class City: pass\nasync def weather(a, b): ...", "its arguments must be a class derived from Arguments"),
        ("class City(Arguments):\n    x: type(lambda: 0)\nasync def weather(a, b): ...", "tools.py"),
    ],
)
def test_a_mistake_is_found_when_the_team_is_loaded(tmp_path: Path, code: str, problem: str) -> None:
    with pytest.raises(TeamError, match=re.escape(problem)) as error:
        team(tmp_path, code).load("crew")
    assert "tools.py" in error.value.message


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    code = "async def one(city): ...\nasync def two(a, b) -> int: ..."
    files = team(tmp_path, code, 'Tool("one", "d", City, one)', 'Tool("two", "d", City, two)', "one")
    with pytest.raises(TeamError) as error:
        files.load("crew")
    for part in ("tools.one: ", "tools.two: ", "TOOLS[2] is a function: it must be Tool("):
        assert part in error.value.message


def test_all_wrong_tools_of_a_team_file_are_told_at_once_with_what_was_meant(tmp_path: Path) -> None:
    toml = write(tmp_path) / "team.toml"
    text = toml.read_text().replace('tools = ["calculate"]', 'tools = ["calculat", "nothing"]')
    toml.write_text(text + '\n[[tools]]\nname = "b"\nuses = "calculater"\n')
    with pytest.raises(TeamError) as error:
        TeamFiles([tmp_path]).load("crew")
    for part in ("'calculat', did you mean 'calculate'?", "'nothing'; the team has", "did you mean 'calculator'?"):
        assert part in error.value.message


async def test_a_plain_function_and_a_plain_text_are_taken(tmp_path: Path) -> None:
    code = "def weather(it, context) -> str:\n    return f'{it.city}: {threading.current_thread().daemon}'"
    ran = await call(team(tmp_path, code), {"city": "Oslo"})
    assert (ran.text, ran.is_error) == ("Oslo: True", False)


async def test_a_plain_function_that_fails_is_an_error_result(tmp_path: Path) -> None:
    ran = await call(team(tmp_path, "def weather(a, b):\n    raise SystemExit('bug')"), {"city": "Oslo"})
    assert (ran.text, ran.is_error) == ("SystemExit: bug", True)


def test_a_folder_with_capitals_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, name="noTOOLS")
    assert TeamFiles([tmp_path]).misnamed() == [folder]


def test_an_unknown_team_says_which_was_meant(tmp_path: Path) -> None:
    write(tmp_path, name="library")
    with pytest.raises(TeamError, match="did you mean 'library'"):
        TeamFiles([tmp_path]).load("libary")
