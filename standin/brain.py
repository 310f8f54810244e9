"""The brain: from a request to a reply, by what kind of call it is."""

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from standin import judgement, next_steps, planner
from standin.answer import plain_answer, synthesis, worker_answer
from standin.compose import FOOTER
from standin.guess import Guesses
from standin.request import Json, Request
from standin.schema_fill import Filler
from standin.structured_answer import structured_answer
from standin.tool_use import next_calls


@dataclass
class Reply:
    """A message's content; `usage` None is counted from the texts."""

    content: list[Json]
    stop_reason: str = "end_turn"
    stop_details: Json | None = None
    usage: Json | None = None
    extra: Json = field(default_factory=dict)


def think(request: Request) -> Reply:
    """The reply to a request: tool calls, JSON for its schema, or text."""
    if request.tools and (calls := next_calls(request)):
        names = ", ".join(dict.fromkeys(name for name, _ in calls))
        return Reply([text_block(f"Calling {names}."), *(tool_block(*call) for call in calls)], "tool_use")
    if request.schema is not None:
        value = _structured(request)
        if request.submit:
            return Reply([tool_block(request.submit, value)], "tool_use")
        return Reply([text_block(json.dumps(value, ensure_ascii=False))])
    return Reply([text_block(worker_answer(request) if request.tools else plain_answer(request))])


def text_block(text: str) -> Json:
    """A text block."""
    return {"type": "text", "text": text}


def tool_block(name: str, arguments: Any) -> Json:
    """A tool_use block with an id of its own."""
    return {"type": "tool_use", "id": f"toolu_{secrets.token_hex(12)}", "name": name, "input": arguments}


def _structured(request: Request) -> Any:
    filler = Filler(request.schema or {}, Guesses(request, lambda: plain_answer(request)))
    fields = filler.properties()
    if "items" in fields.get("subtasks", {}):
        return filler.fill(_planned(request, filler, fields))
    if "answer" in fields:
        made = synthesis(request)
        if "answer_json" in fields:
            made["answer_json"] = structured_answer(request, fields["answer_json"])
        return filler.fill(made)
    for name, judge in (("verdicts", judgement.review), ("choice", judgement.select), ("prefer", judgement.settle)):
        if name in fields:
            return filler.fill(judge(request))
    if "secondary_role" in fields:
        return filler.fill(next_steps.route(request, filler))
    if list(fields) == ["description"]:
        return filler.fill(next_steps.refined(request))
    return filler.fill(None if fields == {} else {})


def _planned(request: Request, filler: Filler, fields: Json) -> Json:
    if "finished" in fields:
        return next_steps.step(request, filler)
    if "replaces" in filler.properties(fields["subtasks"]["items"]):
        return next_steps.revision(request)
    made = planner.plan(request, filler)
    if made.get("direct_answer"):
        made["direct_answer"] += f"\n\n{FOOTER}"
    return made
