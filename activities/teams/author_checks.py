"""What is wrong with the tools of a team's author, found when the team is loaded and not at the first call."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from activities.tools.tool import Tool, ToolOutput
from supervision import limits
from supervision.text import one_line

_FORM = "(arguments, context)"


def tool_list(tools: object) -> list[Tool[Any]]:
    """Returns the author's tools. Raises ValueError with every problem of every one of them."""
    if not isinstance(tools, list):
        raise ValueError("it must define TOOLS as a list of Tool")
    problems = [problem for number, tool in enumerate(tools) for problem in _problems(number, tool)]
    if problems:
        raise ValueError("; ".join(problems))
    return tools


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
