"""Templates: subtasks with `for_each`, and the revision in which a subtask for each item takes their place."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from pydantic import JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, did_you_mean, quoted
from temporal_supervisor.supervision.contract.plan import Plan, Subtask, template_of

ITEM_BYTES = limits.KIB  # of one item in its subtask's brief: a row of a table, a line
_EACH = re.compile(
    r"\b(each|every|all|any|per|jede[nmrs]?|alle[nrs]?|pro|chaque|tou(s|te|tes)|"
    r"cada|tod[ao]s?|ogni|tutt[ei]|elke?)\b",
    re.IGNORECASE,
)
_FORMS = "items:SUBTASK, rows:TABLE, lines:TEXT or files:PATTERN"


Data = Mapping[str, Sequence[str]]
"""The names of a run's data: its tables as `rows`, its texts as `lines`, its `files`."""

NO_DATA: Data = {"rows": (), "lines": (), "files": ()}


def for_each_problems(subtask: Subtask, data: Data) -> list[str]:
    """Returns the problems of a template, a sentence each.

    None of a subtask that is no template.
    """
    if subtask.for_each is None:
        return []
    name, (kind, _, source) = f"subtask {quoted(subtask.id)}", subtask.for_each.partition(":")
    problems = []
    if subtask.max_items is not None and not 1 <= subtask.max_items <= limits.ITEMS:
        problems.append(f"{name} has max_items {subtask.max_items}, 1 to {limits.ITEMS} are allowed")
    if kind == "items":
        if source not in subtask.depends_on:
            problems.append(f"{name} is for the items of {quoted(source)}: list that in its depends_on")
    elif kind == "files":
        if not matching(data["files"], source):
            problems.append(f"{name} is for the files {quoted(source)}, and no attached file has such a name")
    elif kind not in data:
        problems.append(f"{name} has the for_each {quoted(subtask.for_each)}: it must be {_FORMS}")
    elif source not in (known := data[kind]):
        problems.append(
            f"{name} is for the {kind} of {quoted(source)}, which is not attached" + did_you_mean(source, known)
        )
    return problems


def asks_for_each(goal: str) -> bool:
    """True if a goal has a word that asks for something of each of several things."""
    return _EACH.search(goal) is not None


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Returns the names that a pattern such as `*.pdf` fits, in any case of letters."""
    return [name for name in names if fnmatchcase(name.casefold(), pattern.casefold())]


def item_text(item: JsonValue) -> str:
    """Returns an item as its subtask shows it."""
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return cut(text.encode("utf-8", "replace").decode().strip(), ITEM_BYTES)


def room_for(template: Subtask, others: int, affordable: int | None) -> tuple[int, str]:
    """Returns the number of a template's items that get a subtask, and why no more do.

    There are so many `others` beside them. None is affordable without limit.
    """
    rooms = [(max(0, limits.ITEMS - others), f"a run has at most {limits.ITEMS} items")]
    if template.max_items is not None:
        rooms.append((template.max_items, f"max_items is {template.max_items}"))
    if affordable is not None:
        rooms.append((affordable, "the budget has no room for them"))
    return min(rooms)


def items_of(template: Subtask, items: Sequence[str]) -> list[Subtask]:
    """Returns a subtask for each item.

    The finding that names the items is no part of their briefs.
    """
    depends_on = [other for other in template.depends_on if (template_of(other) or other) != template.names_items_of]
    common = {"for_each": None, "max_items": None, "reasoning": "", "depends_on": depends_on, "replaces": [template.id]}
    return [
        template.model_copy(update={**common, "id": f"{template.id}.{number}", "item": item})
        for number, item in enumerate(items, 1)
    ]


def expanded(plan: Plan, items: Sequence[Subtask]) -> Plan:
    """Returns the next revision, in which `items` take the place of their template for those that depend on it."""
    ids = [item.id for item in items]
    (template,) = {old for item in items for old in item.replaces}
    subtasks = []
    for subtask in plan.subtasks:
        depends_on = [one for old in subtask.depends_on for one in (ids if old == template else [old])]
        subtasks.append(subtask.model_copy(update={"depends_on": depends_on}))
    return plan.model_copy(update={"subtasks": in_order([*subtasks, *items]), "revision": plan.revision + 1})


def in_order(subtasks: Sequence[Subtask]) -> list[Subtask]:
    """Returns the subtasks that a plan names, then items in the order of their templates.

    So a plan is the same whichever template was expanded first: after a reset that may be another
    one.
    """
    named = [subtask for subtask in subtasks if subtask.template is None]
    places = {subtask.id: place for place, subtask in enumerate(named)}
    items = [subtask for subtask in subtasks if subtask.template is not None]
    return [*named, *sorted(items, key=lambda item: places[item.template or ""])]
