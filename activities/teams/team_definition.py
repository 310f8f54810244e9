"""A team read from its files: its definition, and with the tools that it sets up. All that is wrong is told at once."""

import inspect
import os
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ValidationError

from activities.teams.toolbox import Toolbox, set_up_tools
from activities.tools.tool import Tool, ToolOutput
from supervision.base import limits
from supervision.base.errors import ErrorKind, SupervisionError
from supervision.base.text import NAME_SHOWN_BYTES, did_you_mean, one_line, quoted
from supervision.base.trust import distrust
from supervision.contract.request import complaint_lines
from supervision.contract.team import Table, Team, ToolEntry, names_of, tables, texts

TEAM_FILE_BYTES = 1024 * 1024  # a team file is written by hand


class TeamError(SupervisionError):
    """A team that cannot be used: `UnknownTeam` for names and files, `InvalidRequest` for inline teams.

    `problems` are those of its files, one by one, where the message has them all.
    """

    def __init__(self, kind: ErrorKind, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(kind, message)
        self.problems = problems


def read_definition(folder: Path) -> Team:
    """Returns what the folder's team.toml says, without running any code of the team. Raises TeamError."""
    file = folder / "team.toml"
    with _naming(file):
        team, problems = _as_team(_read_table(file), folder)
        if team is None or problems:
            raise ValueError("; ".join(problems))
        return team


def read_team(
    folder: Path, bind: Callable[[Tool[Any]], Tool[Any]], unknown_teams: Callable[[Table], list[str]]
) -> tuple[Team, Toolbox]:
    """Returns a team and its tools; `bind` makes the author's own ready.

    Raises TeamError with all that is wrong, also what `unknown_teams` says of the teams that roles name.
    """
    file = folder / "team.toml"
    with _naming(file):
        read = _read_table(file)
        team, problems = _as_team(read, folder)
        broken, own = "", list[Tool[Any]]()
        try:
            own = [bind(tool) for tool in own_tools(folder / "tools.py")]
        except ValueError as error:
            broken = str(error)
        tools, unusable = set_up_tools(_entries(read), folder)
        problems += unusable
        if not broken:  # else a tool that seems unknown may be one of the author's
            problems += _unknown_tools(read, [tool.name for tool in own])
        if team is None or problems or broken:
            problems += unknown_teams(read)
            told = [f"{file}: {one_line('; '.join(problems), limits.ERROR_BYTES)}"] if problems else []
            message = "; ".join(filter(None, [*told, broken]))
            raise TeamError(ErrorKind.UNKNOWN_TEAM, message, [*filter(None, [*problems, broken])])
        return team, Toolbox([*own, *tools])


def _read_table(file: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file. Raises ValueError or OSError if it can't be read."""
    if file.stat().st_size > TEAM_FILE_BYTES:
        raise ValueError(f"the file is larger than {TEAM_FILE_BYTES} bytes")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _as_team(read: dict[str, Any], folder: Path) -> tuple[Team | None, list[str]]:
    """Returns the team that a file describes, None if it is none, and all that is wrong with it."""
    problems = list[str]()
    team = None
    try:
        team = Team.model_validate(read)
    except ValidationError as error:
        problems = [line.removeprefix("request: ") for line in complaint_lines(error, value=read)]
    if isinstance(name := read.get("name"), str) and name != folder.name:
        problems.append(f"name: {quoted(name)} must be the folder's name, '{folder.name}'")
    return team, problems


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Turns what is wrong with a team's files into a TeamError that names the file."""
    try:
        yield
    except RecursionError:
        raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file}: it is nested too deeply") from None
    except (ValueError, OSError) as error:  # TOML errors are ValueErrors that name the line
        raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file}: {one_line(str(error), limits.ERROR_BYTES)}") from error


def _entries(read: Table) -> list[ToolEntry]:
    """Returns the tools to set up; what is wrong with the others was told with the team's fields."""
    entries = []
    for table in tables(read.get("tools")):
        with suppress(ValidationError):
            entries.append(ToolEntry.model_validate(table))
    return entries


def _unknown_tools(read: Table, own: list[str]) -> list[str]:
    """Returns a problem for each tool that a role or the toolbox names, and that the team does not have."""
    known = {*own, *names_of(tables(read.get("tools")))}
    used = [(f"roles.{role.get('name')}.tools", texts(role.get("tools"))) for role in tables(read.get("roles"))]
    has = one_line(", ".join(sorted(known)), limits.PARAGRAPH_BYTES) or "none"
    return [
        f"{one_line(where, limits.LINE_BYTES)}: there is no tool {quoted(name)}"
        f"{did_you_mean(name, known)}; the team has: {has}"
        for where, names in [*used, ("toolbox", texts(read.get("toolbox")))]
        for name in names
        if name not in known
    ][: limits.FIELD_COMPLAINTS]


_FORM = "(arguments, context)"


def own_tools(file: Path) -> list[Tool[Any]]:
    """Returns the tools of a team's `tools.py`; ValueError with every problem, or with the line of its exception."""
    if not file.is_file():
        return []
    for path in (file, file.parent, file.parent.parent):  # who may write to a folder may exchange what is in it
        if why := distrust(path.stat(), os.getuid()):
            raise ValueError(f"{file} is code and is not run: {path} is open to others, {why}")
    try:
        tools = getattr(_imported(file), "TOOLS", None)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        problem = f"line {line}: {type(error).__name__}: {one_line(str(error), limits.ERROR_BYTES)}"
        raise ValueError(f"{file}: {problem}") from error
    if not isinstance(tools, list):
        raise ValueError(f"{file}: it must define TOOLS as a list of Tool")
    if problems := [problem for number, tool in enumerate(tools) for problem in _problems(number, tool)]:
        raise ValueError(f"{file}: {one_line('; '.join(problems), limits.ERROR_BYTES)}")
    return tools


def _imported(file: Path) -> ModuleType:
    name = f"supervisor_team_{file.parent.name.replace('-', '_')}_tools"
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # dataclasses and pydantic look their module up there
    # Not importlib's loader: its bytecode cache takes two writes within a second for one.
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return module


def _problems(number: int, tool: object) -> Iterator[str]:
    if not isinstance(tool, Tool):
        kind = "a function" if inspect.isroutine(tool) else f"of type {type(tool).__name__}"
        yield f"TOOLS[{number}] is {kind}: it must be Tool(name, description, arguments, function)"
        return
    where = f"tools.{one_line(str(tool.name), NAME_SHOWN_BYTES)}"
    if not (isinstance(tool.arguments, type) and issubclass(tool.arguments, BaseModel)):
        yield f"{where}: its arguments must be a class derived from Arguments"
    else:
        try:
            tool.schema()
        except Exception as error:  # pydantic raises several kinds, for types that JSON does not have
            yield f"{where}: its arguments have no JSON schema: {one_line(str(error), limits.SENTENCE_BYTES)}"
    if not callable(tool.run):
        yield f"{where}: its function must be callable, it is of type {type(tool.run).__name__}"
    else:
        yield from _of_function(where, tool.run)


def _of_function(where: str, function: Callable[..., object]) -> Iterator[str]:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # made by other means than `def`: the first call shows it
        return
    try:
        signature.bind(object(), object())
    except TypeError:
        yield f"{where}: its function must take {_FORM}, it takes {one_line(str(signature), limits.SENTENCE_BYTES)}"
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        yield f"{where}: its function must return its output at once, not yield it"
    returned = signature.return_annotation
    if returned is None or (
        isinstance(returned, type) and not issubclass(returned, (str, ToolOutput, inspect.Signature.empty))
    ):
        name = getattr(returned, "__name__", str(returned))
        yield f"{where}: its function must return a ToolOutput or a str, not {name}"
