"""Plans that go on: the next step, replacements for what failed, and the one role for a whole goal."""

from standin.extract import prompt_parts
from standin.extract.planner import FINAL_INSTRUCTION, first_number, goal_of, roles_for, subtask
from standin.extract.role_choice import composes, offered, ranked
from standin.extract.schema_fill import Filler
from standin.extract.text.words import clip, key_stems
from standin.server.api_request import ApiRequest, Json
from supervision import prompt_marks as marks

_FAILED = "An earlier attempt failed:"  # what a description says if it is not the first of its kind
_HINT_CHARS = 200


def step(request: ApiRequest, filler: Filler) -> Json:
    """Returns one subtask for a role that has not worked yet, those that compose last; else that nothing is left."""
    goal = goal_of(request)
    ended = prompt_parts.ended_subtasks(request.prompt)
    done = [one.subtask_id for one in ended if one.state == "completed"]
    used = {one.role for one in ended}
    unused = sorted((role for role in roles_for(request, filler) if role.name not in used), key=composes)
    left = [role for role in unused if done or not ended or not composes(role)][:1]
    attachments = prompt_parts.attachments(request.prompt)
    made = [subtask(first_number(request), role, goal, done if composes(role) else [], attachments) for role in left]
    return {"finished": not made, "subtasks": made, "final_instruction": FINAL_INSTRUCTION}


def revision(request: ApiRequest) -> Json:
    """Returns another try for each subtask that failed; one that was another try already is left."""
    ended = prompt_parts.ended_subtasks(request.prompt)
    completed = {one.subtask_id for one in ended if one.state == "completed"}
    failed = [one for one in ended if one.state == "failed" and not one.replaced and _FAILED not in one.description]
    start, made = first_number(request), []
    for at, old in enumerate(failed):
        after = [id for id in old.depends_on if id in completed]
        again = subtask(start + at, prompt_parts.RoleLine(old.role), "", after, [])
        hint = with_hint(old.description, old.note or "it gave no finding")
        made.append({**again, "description": hint, "replaces": [old.subtask_id]})
    return {"subtasks": made}


def route(request: ApiRequest, filler: Filler) -> Json:
    """Returns the role that shares most words with the goal; a second one only where it shares as many."""
    goal = goal_of(request)
    (score, role), *others = ranked(offered(request, filler, filler.properties()["role"]), key_stems(goal))
    beside = next((other.name for shared, other in others if shared == score > 0), None)
    return {"role": role.name, "secondary_role": beside, "description": subtask(1, role, goal, [], [])["description"]}


def refined(request: ApiRequest) -> Json:
    """Returns the same description after a line about the error; its question stays as it was."""
    old = prompt_parts.block(request.prompt, marks.SUBTASK) or ""
    error = prompt_parts.block(request.prompt, marks.ERROR)
    return {"description": with_hint(old, error) if error else old}


def with_hint(description: str, error: str) -> str:
    """Returns `description` after a line about the error; a line about an older error is dropped."""
    rest = "\n".join(line for line in description.splitlines() if not line.startswith(_FAILED)).strip()
    question = rest if "Question:" in rest else f"Question: {rest}"
    return f"{_FAILED} {clip(error.replace('Question:', ''), _HINT_CHARS)}. Take another way.\n{question}"
