"""Plans: the role for each part of a goal, by the roles and data in a prompt."""

import re

from temporal_supervisor.standin.extract.prompt_parts import Parts, RoleLine, block
from temporal_supervisor.standin.extract.question_parts import (
    Part,
    expressions_in,
    parts_of,
    query_of,
    wants_document,
)
from temporal_supervisor.standin.extract.schema_fill import Filler
from temporal_supervisor.standin.lookup.word_forms import clip, key_words, sentences
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base import prompt_marks as marks
from temporal_supervisor.supervision.base.json_object import JsonObject

_CAP = re.compile(marks.MOST_SUBTASKS.format(most=r"(\d+)"))
_PURPOSE_CHARS = 300
_ESTIMATED_TOKENS = 4000
_OWN_WORDS = 2  # a part with fewer is described with the words of the part before it


def plan(prompt: Parts, filler: Filler) -> JsonObject:
    """Returns the subtasks of a goal.

    In the strategy `step` that is the next one, in a revision the replacements of failed ones.
    """
    is_step = "finished" in filler.properties()
    roles = _roles(prompt, filler)
    is_revision = bool(prompt.planned) and not is_step
    made = (
        _replacements(prompt, filler, roles)
        if is_revision
        else _next_subtasks(prompt, roles, one=is_step)
    )
    return {
        "strategy": "plan",
        "reasoning": "Each part of the goal goes to the role that has the data for it.",
        "final_instruction": "Answer the goal from the findings, with their figures.",
        "subtasks": made[: _most_subtasks(prompt)],
        "finished": not made,
    }


def route(prompt: Parts, filler: Filler) -> JsonObject:
    """Returns the role that fits the goal best."""
    offered = _offered(prompt, filler.properties()["role"])
    role = min(offered, key=lambda role: (role.composes, -role.fit(prompt.question)))
    described = _subtask(prompt, "t1", role, [], _whole_question(prompt.question))["description"]
    return {"role": role.name, "secondary_role": None, "description": described}


def _most_subtasks(prompt: Parts) -> int:
    stated = _CAP.search(prompt.text)
    return int(stated[1]) if stated else limits.MAX_SUBTASKS


def _next_subtasks(prompt: Parts, roles: list[RoleLine], *, one: bool) -> list[JsonObject]:
    """Returns the subtasks of roles that have none yet, or the first of them."""
    planned = [head for head, _ in prompt.planned]
    known = [head.get("id", "") for head in planned if head["state"] == "completed"]
    used = {head.get("role") for head in planned}
    made: list[JsonObject] = []
    for role, asked in _shares(prompt, roles):
        if role.name in used:
            continue
        number = len(planned) + len(made) + 1
        # Who composes a text needs all that was found, and so does who comes after.
        after = [*known] if role.composes else []
        made.append(_subtask(prompt, f"t{number}", role, after, asked))
        known.append(f"t{number}")
    return made[:1] if one else made


def _shares(prompt: Parts, roles: list[RoleLine]) -> list[tuple[RoleLine, str]]:
    """Returns each role with work to do, and its part of the question.

    Without a list of data each role gets the whole question.
    """
    catalogue = block(prompt.text, marks.DATA)
    if not catalogue:
        return [(role, _whole_question(prompt.question)) for role in roles]
    finding = [role for role in roles if not role.composes] or roles
    shares: dict[str, list[str]] = {}
    for part in parts_of(prompt.question):
        role = _role_for(part, finding, catalogue)
        shares.setdefault(role.name, []).append(_described(part))
    chosen: list[tuple[RoleLine, str]] = []
    for role in finding:
        if role.name in shares:
            chosen.append((role, "? ".join(shares[role.name])))
    if wants_document(prompt.question):
        writing = [role for role in roles if role.composes and role not in finding]
        chosen += [(role, _whole_question(prompt.question)) for role in writing]
    return chosen


def _role_for(part: Part, roles: list[RoleLine], catalogue: str) -> RoleLine:
    """Returns the role with the data for a part: tables, a calculator, or texts."""
    if query_of(part, catalogue) is not None:
        fitting = [role for role in roles if role.queries]
    elif expressions_in(part.text):
        fitting = [role for role in roles if role.computes]
    else:
        fitting = [role for role in roles if not role.queries]
    return max(fitting or roles, key=lambda role: role.fit(part.whole))


def _replacements(prompt: Parts, filler: Filler, roles: list[RoleLine]) -> list[JsonObject]:
    """Returns a subtask of another role for each failed one.

    There are none once every role has tried.
    """
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    if "replaces" not in item:
        return []
    used = {head.get("role") for head, _ in prompt.planned}
    left = [role for role in roles if role.name not in used and not role.composes]
    made: list[JsonObject] = []
    for head, text in prompt.planned:
        if head["state"] != "failed" or "replaced_by" in head or not left:
            continue
        role = left.pop(0)
        number = len(prompt.planned) + len(made) + 1
        subtask = _subtask(prompt, f"t{number}", role, [], _question_of(text, prompt))
        made.append({**subtask, "replaces": [head["id"]]})
    return made


def _question_of(described: str, prompt: Parts) -> str:
    """Returns the question of a subtask in the plan so far, else the goal's."""
    _, found, question = described.partition("Question: ")
    if not found:
        return _whole_question(prompt.question)
    before, _, _ = question.partition(f"<{marks.OUTCOME}>")
    return before.strip(" ?\n")


def _roles(prompt: Parts, filler: Filler) -> list[RoleLine]:
    """Returns the roles in the plan's schema; a role that composes comes last."""
    item = filler.properties(filler.properties()["subtasks"].get("items"))
    roles = _offered(prompt, item.get("role", {}))
    finding = [role for role in roles if not role.composes]
    composing = [role for role in roles if role.composes]
    return [*finding, *composing[:1]]


def _offered(prompt: Parts, schema: JsonObject) -> list[RoleLine]:
    """Returns the roles that a schema offers, or all roles if it has no choices."""
    options = [name for name in schema.get("enum") or [] if name != "auto"]
    known = [role for role in prompt.roles if not options or role.name in options]
    if known:
        return known
    return [RoleLine(name, name) for name in options or ["auto"]]


def _subtask(prompt: Parts, id_: str, role: RoleLine, after: list[str], asked: str) -> JsonObject:
    """Returns a subtask: its role's purpose, for people, and the question."""
    purpose = clip(role.description.rstrip(".") or f"Work as {role.name}", _PURPOSE_CHARS)
    return {
        "id": id_,
        "description": f"{purpose}.\nQuestion: {clip(asked, limits.DESCRIPTION_CHARS - 1000)}",
        "role": role.name,
        "depends_on": after,
        "reasoning": f"The work of {role.name}.",
        "estimated_tokens": _ESTIMATED_TOKENS,
        "attachments": prompt.attachments if "attachment" in role.extras else [],
    }


def _described(part: Part) -> str:
    """Returns a part with the words that it needs from the part before it."""
    borrowed = _words(part.context)
    if len(_words(part.text)) >= _OWN_WORDS or not borrowed:
        return part.text
    return f"{part.text} ({' '.join(borrowed)})"


def _words(text: str) -> list[str]:
    """Returns the key words of a text without numbers."""
    return [word for word in key_words(text) if not word.isdigit()]


def _whole_question(goal: str) -> str:
    """Returns the questions in a goal, without instructions to the answer's author."""
    asked = [sentence for sentence in sentences(goal) if sentence.endswith("?")]
    return " ".join(asked).rstrip("? ") or goal
