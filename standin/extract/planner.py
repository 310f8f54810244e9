"""Plans: one subtask per role that the goal calls for, the composing roles last; or the answer to a sum."""

import re

from simpleeval import simple_eval

from standin.extract import prompt_parts
from standin.extract.prompt_parts import RoleLine
from standin.extract.role_choice import chosen, composes, measures, offered
from standin.extract.schema_fill import Filler
from standin.extract.text.words import clip, key_stems
from standin.server.api_request import ApiRequest, Json
from supervision import limits
from supervision import prompt_marks as marks

FINAL_INSTRUCTION = "Answer the goal from the findings, with their figures."
_PARTS = re.compile(r"\s*;\s*|(?<=\?)\s+(?=[A-Z])|(?:^|\s)\(?\d{1,2}[.)]\s+(?=\S)|^\s*[-*]\s+(?=\S)", re.MULTILINE)
_MOST_PARTS = 4
_CAP = re.compile(marks.MOST_SUBTASKS.format(most=r"(\d+)"))
_GREETING = re.compile(
    r"(hello|hi|hey|thanks?|thank you|good (morning|afternoon|evening|day)|how are you|bye|what can you do)\b.{0,12}",
    re.I,
)
_QUESTION = re.compile(r"^(please )?(what is|what's|how much is|calculate|compute|work out)\s+", re.IGNORECASE)
_SUM = re.compile(r"(?=.*\d\s*[-+*/])[\d\s.+\-*/()]{3,200}")


def plan(request: ApiRequest, filler: Filler) -> Json:
    """Returns the fields of a plan, to be fitted into the schema's `subtasks`."""
    goal = goal_of(request)
    fields = filler.properties()
    direct = direct_answer(goal) if "direct_answer" in fields else None
    subtasks = [] if direct else _subtasks(request, filler, goal)
    return {"direct_answer": direct, "strategy": "plan", "final_instruction": FINAL_INSTRUCTION, "subtasks": subtasks}


def goal_of(request: ApiRequest) -> str:
    """Returns the goal: its block, else all user text."""
    return prompt_parts.focus(prompt_parts.block(request.prompt, marks.GOAL) or request.user_text)


def direct_answer(goal: str) -> str | None:
    """Returns the answer to small talk or plain arithmetic; None for everything else."""
    text = goal.strip().rstrip("?!. ")
    if _GREETING.fullmatch(text):
        return "Hello. I plan a goal, delegate its subtasks and answer from what comes back: tell me a goal."
    expression = _QUESTION.sub("", text)
    if not _SUM.fullmatch(expression):
        return None
    try:
        return f"{expression.strip()} = {simple_eval(expression.strip()):.12g}"
    except Exception:  # simpleeval passes on whatever the expression raises
        return None


def roles_for(request: ApiRequest, filler: Filler) -> list[RoleLine]:
    """Returns the roles that the plan's schema offers and the goal calls for."""
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    return chosen(offered(request, filler, item.get("role", {})), key_stems(goal_of(request)))


def subtask(number: int, role: RoleLine, part: str, depends_on: list[str], attachments: list[str]) -> Json:
    """Returns the fields of a subtask: what the role is for, its tools, and the question."""
    purpose = clip(role.description.rstrip(".") or f"Work as {role.name}", 300)
    tools = f" Use {', '.join(role.tools)}." if role.tools else ""
    basis = " Build on the findings of the other subtasks." if depends_on else ""
    return {
        "id": f"t{number}",
        "description": f"{purpose}.{tools}{basis} Question: {clip(part, limits.DESCRIPTION_CHARS - 1000)}",
        "role": role.name,
        "capabilities": role.capabilities,
        "depends_on": depends_on,
        "importance": "required",
        "candidates": 1,
        "attachments": attachments,
    }


def first_number(request: ApiRequest) -> int:
    """Returns the number of the next subtask: they go on after those of an earlier revision."""
    return max((int(number) for number in re.findall(r'\bid="t(\d+)"', request.user_text)), default=0) + 1


def _subtasks(request: ApiRequest, filler: Filler, goal: str) -> list[Json]:
    stated = _CAP.search(request.prompt)
    cap = int(stated[1]) if stated else limits.MAX_SUBTASKS
    roles = roles_for(request, filler)
    working = [role for role in roles if not composes(role)] or roles
    composing = [role for role in roles if role not in working] if cap > 1 else []
    parts = [part.strip() for part in _PARTS.split(goal) if part and key_stems(part)]
    parts = parts if 1 < len(parts) <= _MOST_PARTS else [goal]
    measuring = max(working, key=measures)  # gets a subtask for each part, the others one for all of them
    work = [(role, part) for role in working for part in (parts if role is measuring else ["; ".join(parts)])]
    attachments, start = prompt_parts.attachments(request.prompt), first_number(request)
    made = [
        subtask(start + at, role, part, [], attachments)
        for at, (role, part) in enumerate(work[: cap - len(composing[:1])])
    ]
    ids = [one["id"] for one in made]
    for role in composing[: cap - len(ids)]:
        made.append(subtask(start + len(made), role, goal, ids, attachments))
    return made
