"""Which tools to call next, and with what: decided by the names and descriptions in their schemas."""

import re
from typing import Any

from standin import arguments
from standin.arguments import Known
from standin.request import Json, Request, ToolCall
from standin.sql_writer import simpler
from standin.tables import parse_grids
from supervision import limits

_MOST_CALLS = 8  # of one turn
_EMPTY = re.compile(r"^\s*(\W*|(no|0|found 0|nothing)\b[^\n]*|\[\]|\{\})\s*$", re.IGNORECASE)
_LAST = re.compile(r"\b(last turn|no more tool|without (any )?tools|no further tool)", re.IGNORECASE)


def next_calls(request: Request) -> list[tuple[str, Json]]:
    """The calls of the next turn, several when they don't need each other; none when it is time to answer.

    A tool is used in one turn only, then once more if its result was an error or empty and other arguments
    can be made. Tools that compose a text wait until no other tool has anything to do.
    """
    if request.turns >= limits.STANDIN_TURNS or _LAST.search(request.last_text):
        return []
    known = arguments.know(request)
    done = request.calls()
    fresh = [call for tool in request.tools if not _used(tool, done) for call in _calls(tool, known)]
    again = [call for tool in request.tools if (call := _corrected(tool, known, done)) is not None]
    composing = {tool["name"] for tool in request.tools if arguments.composes(tool)}
    early = [call for call in [*fresh, *again] if call[0] not in composing]
    return (early or fresh or again)[:_MOST_CALLS]


def _used(tool: Json, done: list[ToolCall]) -> bool:
    return any(call.name == tool["name"] for call in done)


def _calls(tool: Json, known: Known) -> list[tuple[str, Json]]:
    return [(tool["name"], one) for one in arguments.choices(tool, known)]


def _corrected(tool: Json, known: Known, done: list[ToolCall]) -> tuple[str, Json] | None:
    """One more call of a tool whose only use so far brought an error or nothing."""
    mine = [call for call in done if call.name == tool["name"]]
    useless = [call for call in mine if call.is_error or _is_empty(call)]
    if not mine or len(useless) < len(mine) or len(mine) > _MOST_CALLS // 2 or _tried_twice(known, tool):
        return None
    better = _better(tool, useless[0], known)
    return (tool["name"], better) if better is not None and better != useless[0].arguments else None


def _tried_twice(known: Known, tool: Json) -> bool:
    return known.turns_of.get(tool["name"], 0) > 1


def _better(tool: Json, call: ToolCall, known: Known) -> Json | None:
    for name, spec in arguments.properties(tool).items():
        kind = arguments.kind_of(name, spec, tool)
        value: Any = None
        if kind == "sql" and name in call.arguments:
            value = simpler(known.tables, known.focus, known.context, str(call.arguments[name]))
        elif kind == "query" and name in call.arguments and not call.is_error:
            value = " ".join(sorted(known.keys, key=len, reverse=True)[:1])
        elif kind == "id" and call.is_error:
            value = next((one for one in arguments.ids_in(call.output) if one != call.arguments.get(name)), None)
        if value:
            return {**call.arguments, name: value}
    if call.is_error:  # the message may name arguments that were left out
        named = {name for name in arguments.properties(tool) if re.search(rf"\b{re.escape(name)}\b", call.output)}
        return arguments.complete(tool, known, named) if named - set(call.arguments) else None
    return None


def _is_empty(call: ToolCall) -> bool:
    if "| ---" in call.output or "|---" in call.output:
        return not parse_grids(call.output)
    return bool(_EMPTY.match(call.output))
