"""The brain: from a request to a reply, by the kind of call."""

from typing import Any

from standin.extract import judgement, next_steps, planner
from standin.extract.field_guesses import FieldGuesses, structured_answer
from standin.extract.findings_text import FOOTER
from standin.extract.schema_fill import Filler
from standin.extract.tool_use import next_calls
from standin.extract.written_answers import plain_answer, synthesis, worker_finding
from standin.server.api_reply import ApiReply, json_reply, text_block, text_reply, tool_block
from standin.server.api_request import ApiRequest, Json
from supervision.prompt_marks import FINISH_TOOL


def think(request: ApiRequest) -> ApiReply:
    """Returns the reply to a request: tool calls, JSON for its schema, or text."""
    if calls := next_calls(request):
        names = ", ".join(dict.fromkeys(name for name, _ in calls))
        return ApiReply([text_block(f"Calling {names}."), *(tool_block(*call) for call in calls)], "tool_use")
    if request.schema is not None:
        value = _structured(request, request.schema)
        return ApiReply([tool_block(request.submit, value)], "tool_use") if request.submit else json_reply(value)
    return _finished(request) if request.tools else text_reply(plain_answer(request))


def _finished(request: ApiRequest) -> ApiReply:
    """A worker agent's finding: through the tool that takes it if there is one, else as text."""
    made = worker_finding(request)
    for tool in request.tools:
        if tool["name"] == FINISH_TOOL:
            filled = Filler(tool["input_schema"], lambda *_: None).fill(made)
            return ApiReply([tool_block(FINISH_TOOL, filled)], "tool_use")
    limitations = "; ".join(made["limitations"])
    return text_reply(f"{made['finding']}\n\nConfidence: {made['confidence']}\nLimitations: {limitations}")


def _structured(request: ApiRequest, schema: Json) -> Any:
    filler = Filler(schema, FieldGuesses(request))
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
    return filler.fill(None)


def _planned(request: ApiRequest, filler: Filler, fields: Json) -> Json:
    if "finished" in fields:
        made = next_steps.step(request, filler)
    elif "replaces" in filler.properties(fields["subtasks"]["items"]):
        made = next_steps.revision(request)
    else:
        made = planner.plan(request, filler)
    if made.get("direct_answer"):
        made["direct_answer"] += f"\n\n{FOOTER}"
    return {"new_roles": [], **made}
