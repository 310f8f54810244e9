"""Plans that go on: the next step, replacements for what failed, and the one role for a whole goal."""

from standin import prompt
from standin.planner import first_number, goal_of, subtask
from standin.prompt import Outcome
from standin.request import Json, Request
from standin.role_choice import chosen, composes, ranked, roles_of
from standin.schema_fill import Filler
from standin.words import clip, key_stems

FAILED = "An earlier attempt failed:"  # what a description says when it is not the first of its kind
_HINT_CHARS = 200


def step(request: Request, filler: Filler) -> Json:
    """One subtask for a fitting role that has not worked yet, those that compose last; else the word that it ends."""
    goal = goal_of(request)
    work = prompt.outcomes(request.prompt)
    done = [one.subtask_id for one in work if one.state == "completed"]
    used = {one.role for one in work}
    left = [role for role in chosen(_roles(request, filler), key_stems(goal)) if role.name not in used]
    left = sorted((role for role in left if done or not composes(role)), key=composes) or ([] if work else left)
    made = [
        subtask(first_number(request), role, goal, done if composes(role) else [], prompt.attachments(request.prompt))
        for role in left[:1]
    ]
    return {
        "finished": not made,
        "subtasks": made,
        "new_roles": [],
        "final_instruction": "Answer the goal from the findings, with their figures.",
    }


def revision(request: Request) -> Json:
    """Another try for each subtask that failed; one that was another try already is left."""
    work = prompt.outcomes(request.prompt)
    completed = {one.subtask_id for one in work if one.state == "completed"}
    failed = [one for one in work if one.state == "failed" and not one.replaced and FAILED not in one.description]
    start = first_number(request)
    return {"subtasks": [_again(start + at, one, completed) for at, one in enumerate(failed)], "new_roles": []}


def route(request: Request, filler: Filler) -> Json:
    """The role that shares most words with the goal; a second one only where it shares as many."""
    goal = goal_of(request)
    best = ranked(roles_of(request, filler.properties()["role"].get("enum")), key_stems(goal))
    score, role = best[0]
    beside = next((other.name for other_score, other in best[1:] if other_score == score > 0), None)
    made = subtask(1, role, goal, [], [])
    return {"role": role.name, "secondary_role": beside, "description": made["description"]}


def refined(request: Request) -> Json:
    """The same description, told what went wrong; its question stays what it was."""
    old = prompt.block(request.prompt, "subtask") or ""
    error = prompt.block(request.prompt, "error")
    if not error:
        return {"description": old}
    return {"description": with_hint(old, error)}


def with_hint(description: str, error: str) -> str:
    """`description` after a line about the error; a line about an older error is dropped."""
    lines = [line for line in description.splitlines() if not line.startswith(FAILED)]
    rest = "\n".join(lines).strip()
    question = rest if "Question:" in rest else f"Question: {rest}"
    return f"{FAILED} {clip(error.replace('Question:', ''), _HINT_CHARS)}. Take another way.\n{question}"


def _again(number: int, failed: Outcome, completed: set[str]) -> Json:
    return {
        "id": f"t{number}",
        "description": with_hint(failed.description, failed.note or "it gave no finding"),
        "role": failed.role,
        "capabilities": [],
        "depends_on": [id for id in failed.depends_on if id in completed],
        "importance": "required",
        "candidates": 1,
        "attachments": [],
        "replaces": [failed.subtask_id],
    }


def _roles(request: Request, filler: Filler) -> list[prompt.RoleLine]:
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    return roles_of(request, item.get("role", {}).get("enum"))
