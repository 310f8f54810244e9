"""The brain: replies to requests by the kind of call; plans use the roles in the prompt."""

import json
from dataclasses import replace
from typing import Any

from temporal_supervisor.standin.extract import answers, plans
from temporal_supervisor.standin.extract.prompt_parts import Parts
from temporal_supervisor.standin.extract.schema_fill import Filler
from temporal_supervisor.standin.extract.tool_use import composes, looked_up, next_calls
from temporal_supervisor.standin.server.api_reply import (
    ApiReply,
    json_reply,
    text_block,
    text_reply,
    tool_block,
)
from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.supervision.base import prompt_marks as marks
from temporal_supervisor.supervision.base.json_object import JsonObject

_JUDGED = {"verdicts", "choice", "description"}  # the defaults accept all, and change nothing
_NO_JUDGEMENT = "The stand-in model does not judge."
_NO_ROWS = "The stand-in model fills in no lists: an empty one does not say that there is nothing."


def think(request: ApiRequest) -> ApiReply:
    """Returns the reply to a request: tool calls, JSON for its schema, or text."""
    prompt = Parts(request)
    found = looked_up(prompt)
    if found:
        answered = {"role": "assistant", "content": found}
        after = think(replace(request, messages=[*request.messages, answered]))
        return replace(after, content=[*found, *after.content])
    calls = next_calls(prompt)
    if calls:
        names = ", ".join(dict.fromkeys(name for name, _ in calls))
        blocks = [tool_block(name, arguments) for name, arguments in calls]
        return ApiReply([text_block(f"Calling {names}."), *blocks], "tool_use")
    if request.schema is not None:
        return json_reply(_structured(prompt, request.schema))
    if request.tools or marks.LAST_TURN_MARK in request.last_text:
        return _finished(prompt)
    return text_reply(answers.synthesis(prompt)["answer"])


def _finished(prompt: Parts) -> ApiReply:
    """Returns a worker agent's finding, through `finish` if that is offered, else as text."""
    tools = prompt.request.tools
    made = answers.worker_finding(prompt, {tool["name"] for tool in tools if composes(tool)})
    for tool in tools:
        if tool["name"] != marks.FINISH_TOOL:
            continue
        form = Filler(tool["input_schema"])
        output = form.properties().get("output")
        if output:
            made |= _with_output(prompt, output, made)
        filled = {**form.fill(made), "confidence": None}  # an extract has none
        return ApiReply([tool_block(marks.FINISH_TOOL, filled)], "tool_use")
    limitations = "; ".join(made["limitations"])
    return text_reply(
        f"{made['finding']}\n\nOutcome: {made['outcome']}\nLimitations: {limitations}"
    )


def _with_output(prompt: Parts, schema: JsonObject, made: JsonObject) -> JsonObject:
    """Returns the fields of a finding whose output is filled from outputs of tools.

    If values were found, an impossible finding becomes a done one.
    """
    texts = _about_item(prompt)
    value = _structured_answer(prompt, schema, "\n".join([*texts, made["finding"]]))
    limitations = [*made["limitations"]]
    if "[]" in json.dumps(value):
        limitations.append(_NO_ROWS)
    fields: JsonObject = {"output": value, "limitations": limitations}
    cells = json.loads(value) if isinstance(value, str) else value
    if made["outcome"] != "impossible" or not isinstance(cells, dict):
        return fields
    stated = [f"- {name}: {cell}" for name, cell in cells.items() if cell]
    if not stated:
        return fields
    finding = "\n".join([*stated, "", answers.FOOTER])
    return {**fields, "outcome": "done", "finding": finding, "summary": stated[0]}


def _about_item(prompt: Parts) -> list[str]:
    """Returns the outputs of calls with the item's name; of all calls if there are none."""
    done = [call for call in prompt.request.calls if not call.is_error]
    of_item = [call for call in done if prompt.item and prompt.item in call.arguments.values()]
    return [call.output for call in of_item or done]


def _structured(prompt: Parts, schema: JsonObject) -> Any:
    filler = Filler(schema)
    wanted = _wanted(prompt, filler, filler.properties())
    if wanted is None:
        return Filler(schema, answers.source_text(prompt)).fill()
    return filler.fill(wanted)


def _wanted(prompt: Parts, filler: Filler, fields: JsonObject) -> JsonObject | None:
    """Returns the values for a schema's fields; None for an unknown kind of call."""
    if "items" in fields.get("subtasks", {}):
        return plans.plan(prompt, filler)
    if "answer" in fields:
        made = answers.synthesis(prompt)
        if "answer_json" in fields:
            made["answer_json"] = _structured_answer(prompt, fields["answer_json"])
            if "[]" in json.dumps(made["answer_json"]):
                made["answer"] += f"\n\n_{_NO_ROWS}_"
        return made
    if "secondary_role" in fields:
        return plans.route(prompt, filler)
    return {"reason": _NO_JUDGEMENT} if fields.keys() & _JUDGED else None


def _structured_answer(prompt: Parts, schema: JsonObject, text: str = "") -> Any:
    """Returns a value for `schema`, or JSON text if the schema asks for text."""
    _, as_text, described = str(schema.get("description", "")).partition(marks.JSON_AS_TEXT)
    wanted = json.JSONDecoder().raw_decode(described)[0] if as_text else schema
    value = Filler(wanted, text or answers.source_text(prompt)).fill()
    return json.dumps(value, ensure_ascii=False) if as_text else value
