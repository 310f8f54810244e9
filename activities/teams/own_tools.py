"""The tools that a team's author wrote: loading a team's `tools.py`, which is code and trusted as such.

What is wrong with a tool is found here, not at its first call.
"""

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from activities.tools.tool import Tool, ToolOutput
from supervision import limits
from supervision.text import one_line
from supervision.trust import distrust

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
    where = f"tools.{one_line(str(tool.name), limits.NAME_SHOWN_BYTES)}"
    if not (isinstance(tool.arguments, type) and issubclass(tool.arguments, BaseModel)):
        yield f"{where}: its arguments must be a class derived from Arguments"
    else:
        try:
            tool.schema()
        except Exception as error:  # pydantic raises several kinds, for types that JSON does not have
            yield f"{where}: its arguments have no JSON schema: {one_line(str(error), limits.COMPLAINT_BYTES)}"
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
        yield f"{where}: its function must take {_FORM}, it takes {one_line(str(signature), limits.COMPLAINT_BYTES)}"
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        yield f"{where}: its function must return its output at once, not yield it"
    returned = signature.return_annotation
    if returned is None or (
        isinstance(returned, type) and not issubclass(returned, (str, ToolOutput, inspect.Signature.empty))
    ):
        name = getattr(returned, "__name__", str(returned))
        yield f"{where}: its function must return a ToolOutput or a str, not {name}"
