"""The tools to call next and their arguments, by the names and descriptions in their schemas."""

import re

from standin.extract import arguments
from standin.extract.arguments import Known
from standin.extract.example_queries import simpler
from standin.extract.text.tables import parse_grids
from standin.server.api_request import ApiRequest, Json, PastCall
from supervision.prompt_marks import FINISH_TOOL, LAST_TURN_MARK

_TURNS = 5  # look, read or query, calculate, one correction, compose
_MOST_CALLS = 8  # of one turn
_EMPTY = re.compile(r"^\s*(\W*|(no|0|found 0|nothing)\b[^\n]*|\[\]|\{\})\s*$", re.IGNORECASE)

NewCall = tuple[str, Json]
"""A tool's name and its arguments."""


def next_calls(request: ApiRequest) -> list[NewCall]:
    """Returns the calls of the next turn, several if they don't need each other; none if it is time to answer.

    A tool is used in one turn only, then once more if its results were errors or empty and other arguments can be
    made. Tools that compose a text wait until no other tool has anything to do.
    """
    if request.turns >= _TURNS or LAST_TURN_MARK in request.last_text:
        return []
    known, done = arguments.know(request), request.calls()
    early, composing = list[NewCall](), list[NewCall]()
    for tool in request.tools:
        if tool["name"] == FINISH_TOOL:
            continue
        mine = [call for call in done if call.name == tool["name"]]
        sets = _corrected(tool, known, mine, request) if mine else arguments.choices(tool, known)
        (composing if arguments.composes(tool) else early).extend((tool["name"], chosen) for chosen in sets)
    return (early or composing)[:_MOST_CALLS]


def _corrected(tool: Json, known: Known, mine: list[PastCall], request: ApiRequest) -> list[Json]:
    """One more call of a tool whose only turn so far brought errors or nothing."""
    turns = sum(any(block.get("name") == tool["name"] for block in m["content"]) for m in request.messages)
    if turns > 1 or not all(call.is_error or _is_empty(call) for call in mine):
        return []
    better = _better(tool, mine[0], known)
    return [better] if better is not None and better != mine[0].arguments else []


def _better(tool: Json, call: PastCall, known: Known) -> Json | None:
    for name, spec in arguments.properties(tool).items():
        kind, value, old = arguments.kind_of(name, spec, tool), None, call.arguments.get(name)
        if kind == "sql" and old is not None:
            value = simpler(known.tables, str(old), known.focus, known.context)
        elif kind == "query" and old is not None and not call.is_error:
            value = max(known.keys, key=len, default=None)
        elif kind == "id" and call.is_error:
            value = next((id for id in arguments.ids_in(call.output) if id != old), None)
        if value:
            return {**call.arguments, name: value}
    return None


def _is_empty(call: PastCall) -> bool:
    if "| ---" in call.output or "|---" in call.output:
        return not parse_grids(call.output)
    return bool(_EMPTY.match(call.output))
