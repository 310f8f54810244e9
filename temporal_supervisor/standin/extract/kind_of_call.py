"""The brain: from a request to a reply, by the kind of call; plans are made by the roles that a prompt offers."""

import json
import re
from dataclasses import replace
from typing import Any

from temporal_supervisor.standin.extract import answers
from temporal_supervisor.standin.extract.prompt_parts import Parts, RoleLine, clip, sentences
from temporal_supervisor.standin.extract.schema_fill import Filler
from temporal_supervisor.standin.extract.tool_use import composes, looked_up, next_calls
from temporal_supervisor.standin.server.api_reply import ApiReply, json_reply, text_block, text_reply, tool_block
from temporal_supervisor.standin.server.api_request import ApiRequest, Json
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base import prompt_marks as marks

_JUDGED = {"verdicts", "choice", "description"}  # the defaults accept all, and change nothing
_NO_JUDGEMENT = "The stand-in model does not judge."
_NO_ROWS = "The stand-in model fills in no lists: an empty one does not say that there is nothing."
_CAP = re.compile(marks.MOST_SUBTASKS.format(most=r"(\d+)"))
_PURPOSE_CHARS = 300
_ESTIMATED_TOKENS = 4000


def think(request: ApiRequest) -> ApiReply:
    """Returns the reply to a request: tool calls, JSON for its schema, or text."""
    prompt = Parts(request)
    if found := looked_up(prompt):
        after = think(replace(request, messages=[*request.messages, {"role": "assistant", "content": found}]))
        return replace(after, content=[*found, *after.content])
    if calls := next_calls(prompt):
        names = ", ".join(dict.fromkeys(name for name, _ in calls))
        return ApiReply([text_block(f"Calling {names}."), *(tool_block(*call) for call in calls)], "tool_use")
    if request.schema is not None:
        return json_reply(_structured(prompt, request.schema))
    if request.tools or marks.LAST_TURN_MARK in request.last_text:
        return _finished(prompt)
    return text_reply(answers.synthesis(prompt)["answer"])


def _finished(prompt: Parts) -> ApiReply:
    """A worker agent's finding: through the tool that takes it if there is one, else as text."""
    made = answers.worker_finding(prompt, {tool["name"] for tool in prompt.request.tools if composes(tool)})
    for tool in prompt.request.tools:
        if tool["name"] == marks.FINISH_TOOL:
            if output := Filler(tool["input_schema"]).properties().get("output"):
                made["output"] = _structured_answer(prompt, output, made["finding"])
                made["limitations"] += [_NO_ROWS] if "[]" in json.dumps(made["output"]) else []
            filled = {**Filler(tool["input_schema"]).fill(made), "confidence": None}  # an extract has none
            return ApiReply([tool_block(marks.FINISH_TOOL, filled)], "tool_use")
    limitations = "; ".join(made["limitations"])
    return text_reply(f"{made['finding']}\n\nLimitations: {limitations}")


def _structured(prompt: Parts, schema: Json) -> Any:
    filler = Filler(schema)
    wanted = _wanted(prompt, filler, filler.properties())
    return Filler(schema, answers.source_text(prompt)).fill() if wanted is None else filler.fill(wanted)


def _wanted(prompt: Parts, filler: Filler, fields: Json) -> Json | None:
    """The values for the fields of a schema; None if the kind of call is not known by them."""
    if "items" in fields.get("subtasks", {}):
        return _plan(prompt, filler)
    if "answer" in fields:
        made = answers.synthesis(prompt)
        if "answer_json" in fields:
            made["answer_json"] = _structured_answer(prompt, fields["answer_json"])
            if "[]" in json.dumps(made["answer_json"]):
                made["answer"] += f"\n\n_{_NO_ROWS}_"
        return made
    if "secondary_role" in fields:
        return _route(prompt, filler)
    return {"reason": _NO_JUDGEMENT} if fields.keys() & _JUDGED else None


def _structured_answer(prompt: Parts, schema: Json, text: str = "") -> Any:
    """A value for `schema`, or JSON text where the schema asks for that."""
    _, as_text, described = str(schema.get("description", "")).partition(marks.JSON_AS_TEXT)
    wanted = json.JSONDecoder().raw_decode(described)[0] if as_text else schema
    value = Filler(wanted, text or answers.source_text(prompt)).fill()
    return json.dumps(value, ensure_ascii=False) if as_text else value


def _plan(prompt: Parts, filler: Filler) -> Json:
    """Returns a subtask per role, the composing one after the others; of a step the next one, of a revision none."""
    planned, made = [head for head, _ in prompt.planned], list[Json]()
    done = [head.get("id", "") for head in planned if head["state"] == "completed"]
    used = {head.get("role") for head in planned}
    stated = _CAP.search(prompt.text)
    most = int(stated[1]) if stated else limits.MAX_SUBTASKS
    if "finished" in filler.properties():
        most = 1
    elif planned:
        most = 0
    for role in [role for role in _roles(prompt, filler) if role.name not in used][:most]:
        after = [*done, *(one["id"] for one in made)] if role.composes else []
        made.append(_subtask(prompt, len(planned) + len(made), role, after))
    return {
        "strategy": "plan",
        "reasoning": "One subtask for each role that fits the goal.",
        "final_instruction": "Answer the goal from the findings, with their figures.",
        "subtasks": made,
        "finished": not made,
    }


def _route(prompt: Parts, filler: Filler) -> Json:
    """Returns the role that shares most words with the goal."""
    offered = _offered(prompt, filler.properties()["role"])
    role = min(offered, key=lambda role: (role.composes, -role.fit(prompt.question)))
    described = _subtask(prompt, 0, role, [])["description"]
    return {"role": role.name, "secondary_role": None, "description": described}


def _roles(prompt: Parts, filler: Filler) -> list[RoleLine]:
    """The roles that the plan's schema offers, one that composes last."""
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    roles = _offered(prompt, item.get("role", {}))
    return [role for role in roles if not role.composes] + [role for role in roles if role.composes][:1]


def _offered(prompt: Parts, schema: Json) -> list[RoleLine]:
    options = [name for name in schema.get("enum") or [] if name != "auto"]
    known = [role for role in prompt.roles if not options or role.name in options]
    return known or [RoleLine(name, name) for name in options or ["auto"]]


def _subtask(prompt: Parts, at: int, role: RoleLine, after: list[str]) -> Json:
    """Subtask number `at`, from 0: what its role is for, by which people know it, and the question."""
    purpose = clip(role.description.rstrip(".") or f"Work as {role.name}", _PURPOSE_CHARS)
    return {
        "id": f"t{at + 1}",
        "description": f"{purpose}.\nQuestion: {clip(_asked(prompt.question), limits.DESCRIPTION_CHARS - 1000)}",
        "role": role.name,
        "depends_on": after,
        "reasoning": f"The work of {role.name}.",
        "estimated_tokens": _ESTIMATED_TOKENS,
        "attachments": prompt.attachments if "attachment" in role.extras else [],
    }


def _asked(goal: str) -> str:
    """Returns the questions of a goal, without what it asks the author of the answer to do."""
    asked = [sentence for sentence in sentences(goal) if sentence.endswith("?")]
    return " ".join(asked).rstrip("? ") or goal
