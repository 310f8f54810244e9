"""Plans: one subtask per role that the goal calls for, the composing roles last."""

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from standin import prompt
from standin.prompt import RoleLine
from standin.request import Json, Request
from standin.role_choice import chosen, composes, measures, roles_of
from standin.schema_fill import Filler, limit_hint
from standin.words import clip, key_stems
from supervision import limits

_PARTS = re.compile(r"\s*;\s*|(?<=\?)\s+(?=[A-Z])|(?:^|\s)\(?\d{1,2}[.)]\s+(?=\S)|^\s*[-*]\s+(?=\S)", re.MULTILINE)
_CAP = re.compile(r"(?:at most|no more than|up to) (\d+) subtasks|subtasks[^.\n]{0,60}? at most (\d+)", re.IGNORECASE)
_NO_DIRECT = re.compile(r"direct answer is not (wanted|allowed)", re.IGNORECASE)
_SMALL_TALK = re.compile(
    r"(hello|hi|hey|thanks?|thank you|good (morning|afternoon|evening|day)|how are you( today)?|bye|goodbye|"
    r"who are you|what can you do)( there| everyone| all)?",
    re.IGNORECASE,
)
_ASKS = re.compile(r"^(please )?(what is|what's|whats|how much is|calculate|compute|work out)\s+", re.IGNORECASE)
_SPOKEN = (
    ("plus", "+"),
    ("minus", "-"),
    ("times", "*"),
    ("multiplied by", "*"),
    ("divided by", "/"),
    ("×", "*"),
    ("^", "**"),
)
_MOST_PARTS = 4
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


def plan(request: Request, filler: Filler) -> Json:
    """The fields of a plan, to be fitted into the schema's `subtasks`."""
    goal = goal_of(request)
    schema = filler.properties()
    wanted = "direct_answer" in schema and not _NO_DIRECT.search(request.prompt)
    direct = direct_answer(goal) if wanted else None
    if direct is not None:
        return {"goal": goal, "direct_answer": direct, "aggregation": "merge", "subtasks": [], "final_instruction": ""}
    return {
        "goal": goal,
        "strategy": "plan",
        "aggregation": "merge",
        "final_instruction": "Answer the goal from the findings, with their figures.",
        "subtasks": _subtasks(request, filler, goal, _cap(request, schema["subtasks"])),
        "new_roles": [],
        "revision": 1,
    }


def goal_of(request: Request) -> str:
    """The goal: its block, else all that the user wrote."""
    return prompt.focus(prompt.block(request.prompt, "goal") or request.user_text)


def direct_answer(goal: str) -> str | None:
    """The answer to small talk or plain arithmetic; None for everything else."""
    text = goal.strip().rstrip("?!. ").strip()
    if _SMALL_TALK.fullmatch(text):
        return "Hello. I plan a goal, delegate its subtasks and answer from what comes back: tell me a goal."
    sum_ = _ASKS.sub("", text)
    for spoken, sign in _SPOKEN:
        sum_ = re.sub(rf"\b{spoken}\b" if spoken.isalpha() or " " in spoken else re.escape(spoken), sign, sum_)
    sum_ = re.sub(r"(\d+(?:\.\d+)?)\s*(?:%|percent) of\s*", r"\1 / 100 * ", sum_)
    if len(sum_) > 200 or not re.search(r"\d\s*[-+*/]", sum_) or not re.fullmatch(r"[\d\s.+\-*/()]+", sum_):
        return None
    try:
        value = _value(ast.parse(sum_.strip(), mode="eval").body)
    except (SyntaxError, ArithmeticError, ValueError, KeyError):
        return None
    return f"{sum_.strip()} = {value:.12g}"


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp):
        return float(_OPERATORS[type(node.op)](_value(node.left), _value(node.right)))
    if isinstance(node, ast.UnaryOp):
        return float(_OPERATORS[type(node.op)](_value(node.operand)))
    raise ValueError("no arithmetic")


def _cap(request: Request, subtasks: Json) -> int:
    hinted = int(limit_hint(subtasks, "maxItems", limits.MAX_SUBTASKS))
    found = _CAP.search(request.prompt)
    return max(1, min(hinted, int(found.group(1) or found.group(2)) if found else hinted))


def _subtasks(request: Request, filler: Filler, goal: str, cap: int) -> list[Json]:
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    options = item.get("role", {}).get("enum")
    fitting = chosen(roles_of(request, options), key_stems(goal))
    composing = [role for role in fitting if composes(role)] if len(fitting) > 1 else []
    work = _work([role for role in fitting if role not in composing] or fitting, _parts(goal))
    composing = composing if len(work) < cap else []
    work = work[: cap - len(composing[:1])] or work[:1]
    attachments = prompt.attachments(request.prompt)
    start = first_number(request)
    made = [subtask(start + at, role, part, [], attachments) for at, (role, part) in enumerate(work)]
    ids = [one["id"] for one in made]
    for role in composing[: cap - len(made)]:
        made.append(subtask(start + len(made), role, goal, ids, attachments))
    return made


def _work(roles: list[RoleLine], parts: list[str]) -> list[tuple[RoleLine, str]]:
    """Each role once for the whole goal; the role that measures once for each part of it."""
    measuring = max(roles, key=measures)
    whole = "; ".join(parts)
    return [(role, part) for role in roles for part in (parts if role is measuring else [whole])]


def _parts(goal: str) -> list[str]:
    split = [part.strip(" \n") for part in _PARTS.split(goal) if part and key_stems(part)]
    return split[:_MOST_PARTS] if 1 < len(split) <= _MOST_PARTS else [goal]


def subtask(number: int, role: RoleLine, part: str, depends_on: list[str], attachments: list[str]) -> Json:
    """The fields of a subtask: what the role is for, its tools, and the question."""
    tools = f" Use {', '.join(role.tools)}." if role.tools else ""
    said = clip(role.description.rstrip(".") or f"Work as {role.name}", 300)
    basis = " Build on the findings of the other subtasks." if depends_on else ""
    return {
        "id": f"t{number}",
        "description": f"{said}.{tools}{basis} Question: {clip(part, limits.DESCRIPTION_CHARS - 1000)}",
        "role": role.name,
        "capabilities": role.capabilities,
        "depends_on": depends_on,
        "importance": "required",
        "candidates": 1,
        "estimated_tokens": 4000,
        "attachments": attachments,
    }


def first_number(request: Request) -> int:
    """The number of the next subtask: they go on after those of an earlier revision that the prompt shows."""
    used = re.findall(r'"?\b(?:subtask_)?id"?\s*[=:]\s*"t(\d+)"', request.user_text)
    return max((int(number) for number in used), default=0) + 1
