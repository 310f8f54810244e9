"""The brain: from a request to a reply, by the kind of call."""

import json
from dataclasses import replace
from typing import Any

from standin.extract import answers, planner
from standin.extract.schema_fill import Filler
from standin.extract.tool_use import composes, looked_up, next_calls
from standin.server.api_reply import ApiReply, json_reply, text_block, text_reply, tool_block
from standin.server.api_request import ApiRequest, Json
from supervision.base.prompt_marks import FINISH_TOOL, JSON_AS_TEXT, LAST_TURN_MARK

_JUDGEMENTS = {"verdicts": answers.review, "choice": answers.select, "prefer": answers.settle}


def think(request: ApiRequest) -> ApiReply:
    """Returns the reply to a request: tool calls, JSON for its schema, or text."""
    if found := looked_up(request):
        after = think(replace(request, messages=[*request.messages, {"role": "assistant", "content": found}]))
        return replace(after, content=[*found, *after.content])
    if calls := next_calls(request):
        names = ", ".join(dict.fromkeys(name for name, _ in calls))
        return ApiReply([text_block(f"Calling {names}."), *(tool_block(*call) for call in calls)], "tool_use")
    if request.schema is not None:
        value = _structured(request, request.schema)
        return ApiReply([tool_block(request.submit, value)], "tool_use") if request.submit else json_reply(value)
    if request.tools or LAST_TURN_MARK in request.last_text:
        return _finished(request)
    return text_reply(answers.plain_answer(request))


def _finished(request: ApiRequest) -> ApiReply:
    """A worker agent's finding: through the tool that takes it if there is one, else as text."""
    made = answers.worker_finding(request, {tool["name"] for tool in request.tools if composes(tool)})
    for tool in request.tools:
        if tool["name"] == FINISH_TOOL:
            if output := Filler(tool["input_schema"]).properties().get("output"):
                made["output"] = _structured_answer(request, output, made["finding"])
            filled = {**Filler(tool["input_schema"]).fill(made), "confidence": None}  # an extract has none
            return ApiReply([tool_block(FINISH_TOOL, filled)], "tool_use")
    limitations = "; ".join(made["limitations"])
    return text_reply(f"{made['finding']}\n\nLimitations: {limitations}")


def _structured(request: ApiRequest, schema: Json) -> Any:
    filler = Filler(schema)
    fields = filler.properties()
    if "items" in fields.get("subtasks", {}):
        return filler.fill(_planned(request, filler, fields))
    if "answer" in fields:
        made = answers.synthesis(request)
        if "answer_json" in fields:
            made["answer_json"] = _structured_answer(request, fields["answer_json"])
        return filler.fill(made)
    for name, judge in _JUDGEMENTS.items():
        if name in fields:
            return filler.fill(judge(request))
    if "secondary_role" in fields:
        return filler.fill(planner.route(request, filler))
    if list(fields) == ["description"]:
        return filler.fill(planner.refined(request))
    return Filler(schema, answers.source_text(request)).fill()


def _planned(request: ApiRequest, filler: Filler, fields: Json) -> Json:
    if "finished" in fields:
        return planner.step(request, filler)
    if "replaces" in filler.properties(fields["subtasks"]["items"]):
        return planner.revision(request)
    return planner.plan(request, filler)


def _structured_answer(request: ApiRequest, schema: Json, text: str = "") -> Any:
    """A value for `schema`, or JSON text where the schema asks for that."""
    _, as_text, described = str(schema.get("description", "")).partition(JSON_AS_TEXT)
    wanted = json.JSONDecoder().raw_decode(described)[0] if as_text else schema
    value = Filler(wanted, text or answers.source_text(request)).fill()
    return json.dumps(value, ensure_ascii=False) if as_text else value
