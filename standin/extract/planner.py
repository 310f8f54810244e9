"""Plans by the roles that a prompt offers: whole ones, the next step, failed work again, one role for the goal."""

import re

from standin.extract import prompt_parts
from standin.extract.prompt_parts import RoleLine, clip, key_stems, sentences, shared
from standin.extract.schema_fill import Filler
from standin.server.api_request import ApiRequest, Json
from supervision.base import limits
from supervision.base import prompt_marks as marks

_FAILED = "An earlier attempt failed:"  # what a description says if it is not the first of its kind
_FINAL_INSTRUCTION = "Answer the goal from the findings, with their figures."
_COMPOSES = re.compile(r"(?:\b|_)(writ|format|compos|draft|edit)", re.IGNORECASE)
_MOST_ROLES = 4  # of a larger team only those that fit the goal best
_CAP = re.compile(marks.MOST_SUBTASKS.format(most=r"(\d+)"))
_OPENER = re.compile(r"^(how|what|why|when)\s+(did|do|does|is|are|was|were|has|have)\s+", re.IGNORECASE)
_PURPOSE_CHARS = 300
_ERROR_CHARS = 200
_ESTIMATED_TOKENS = 4000


def plan(request: ApiRequest, filler: Filler) -> Json:
    """Returns one subtask per role, the composing ones after the others."""
    goal = _goal(request)
    stated = _CAP.search(request.prompt)
    made = list[Json]()
    for role in _roles(request, filler)[: int(stated[1]) if stated else limits.MAX_SUBTASKS]:
        after = [one["id"] for one in made] if composes(role) else []
        made.append(_subtask(request, len(made), role, goal, after))
    reasoning = "One subtask for each role that fits the goal."
    return {"strategy": "plan", "reasoning": reasoning, "final_instruction": _FINAL_INSTRUCTION, "subtasks": made}


def step(request: ApiRequest, filler: Filler) -> Json:
    """Returns one subtask for a role that has not worked yet; else that nothing is left."""
    ended = [head for head, _ in prompt_parts.blocks(request.prompt, marks.PLANNED)]
    done = [head.get("id", "") for head in ended if head["state"] == "completed"]
    used = {head.get("role") for head in ended}
    left = [role for role in _roles(request, filler) if role.name not in used][:1]
    made = [_subtask(request, 0, role, _goal(request), done if composes(role) else []) for role in left]
    return {"finished": not made, "subtasks": made, "final_instruction": _FINAL_INSTRUCTION}


def revision(request: ApiRequest) -> Json:
    """Returns each subtask that failed once more; one that was another try already is left."""
    ended = prompt_parts.blocks(request.prompt, marks.PLANNED)
    completed = {head.get("id") for head, _ in ended if head["state"] == "completed"}
    made = list[Json]()
    for head, text in ended:
        if head["state"] == "failed" and "replaced_by" not in head and _FAILED not in text:
            after = [one for one in head.get("depends_on", "").split(", ") if one in completed]
            description, note = text.partition(f"\n<{marks.OUTCOME}>")[0], prompt_parts.block(text, marks.OUTCOME) or ""
            again = _subtask(request, len(made), RoleLine(head.get("role", "")), "", after)
            made.append({**again, "description": _again(description, note), "replaces": [head.get("id")]})
    return {"subtasks": made}


def route(request: ApiRequest, filler: Filler) -> Json:
    """Returns the role that shares most words with the goal."""
    goal = _goal(request)
    role = _ranked(_offered(request, filler.properties()["role"]), goal)[0]
    return {"role": role.name, "secondary_role": None, "description": _subtask(request, 0, role, goal)["description"]}


def refined(request: ApiRequest) -> Json:
    """Returns the question of a subtask that failed, after a line about the error."""
    subtask = prompt_parts.block(request.prompt, marks.SUBTASK) or ""
    return {"description": _again(subtask, prompt_parts.block(request.prompt, marks.ERROR) or "")}


def composes(role: RoleLine) -> bool:
    """True if a role writes up the findings of others: by its name, the first word about it, and its tools."""
    tools = role.extras.partition(";")[0]
    return bool(_COMPOSES.search(f"{role.name} {role.description.partition(' ')[0]} {tools}"))


def _goal(request: ApiRequest) -> str:
    return prompt_parts.focus(prompt_parts.block(request.prompt, marks.GOAL) or request.user_text)


def _roles(request: ApiRequest, filler: Filler) -> list[RoleLine]:
    """The roles that the plan's schema offers, of a large team those that fit the goal best; composing ones last."""
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    roles = _offered(request, item.get("role", {}))
    working = [role for role in roles if not composes(role)]
    if len(roles) > _MOST_ROLES:
        goal = _goal(request)
        best = [role for role in _ranked(working, goal)[: _MOST_ROLES - 1] if _fit(role, goal)] or working[:1]
        working = [role for role in working if role in best]
    return working + [role for role in roles if composes(role)][:1]


def _offered(request: ApiRequest, schema: Json) -> list[RoleLine]:
    options = [name for name in schema.get("enum") or [] if name != "auto"]
    known = [role for role in prompt_parts.roles(request.prompt) if not options or role.name in options]
    return known or [RoleLine(name, name) for name in options or ["auto"]]


def _ranked(roles: list[RoleLine], goal: str) -> list[RoleLine]:
    return sorted(roles, key=lambda role: (composes(role), -_fit(role, goal)))


def _fit(role: RoleLine, goal: str) -> int:
    return len(shared(key_stems(goal), " ".join(role)))


def _subtask(request: ApiRequest, at: int, role: RoleLine, question: str, after: list[str] | None = None) -> Json:
    """A subtask, number `at` of those to add: what its role is for, by which people know it, and the question."""
    known = [int(number) for number in re.findall(r'\bid="t(\d+)"', request.user_text)]
    reads = any("attachment" in one.extras for one in prompt_parts.roles(request.prompt) if one.name == role.name)
    purpose = clip(role.description.rstrip(".") or f"Work as {role.name}", _PURPOSE_CHARS)
    return {
        "id": f"t{max(known, default=0) + 1 + at}",
        "description": f"{purpose}.\nQuestion: {clip(_asked(question), limits.DESCRIPTION_CHARS - 1000)}",
        "role": role.name,
        "depends_on": after or [],
        "reasoning": f"The work of {role.name}.",
        "estimated_tokens": _ESTIMATED_TOKENS,
        "attachments": prompt_parts.attachments(request.prompt) if reads else [],
    }


def _asked(goal: str) -> str:
    """Returns the questions of a goal, without what it asks the author of the answer to do."""
    asked = [sentence for sentence in sentences(goal) if sentence.endswith("?")]
    return _OPENER.sub("", " ".join(asked)).rstrip("? ") or goal


def _again(description: str, error: str) -> str:
    """The question of a description after a line about the error; its line about an older error is dropped."""
    reason = clip(error.replace("Question:", ""), _ERROR_CHARS)
    return f"{_FAILED} {reason}. Take another way.\nQuestion: {prompt_parts.focus(description)}"
