"""Templates: subtasks with `for_each`, which are replaced by a subtask for each item."""

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
    """Returns the problems of a template, a sentence each; empty for other subtasks."""
    if subtask.for_each is None:
        return []
    problems = []
    most = subtask.max_items
    if most is not None and not 1 <= most <= limits.ITEMS:
        problems.append(f"has max_items {most}, 1 to {limits.ITEMS} are allowed")
    without_source = _source_problem(subtask.for_each, subtask.depends_on, data)
    if without_source is not None:
        problems.append(without_source)
    return [f"subtask {quoted(subtask.id)} {problem}" for problem in problems]


def _source_problem(for_each: str, depends_on: Sequence[str], data: Data) -> str | None:
    """Returns the problem of the source of items, such as `items:t1`; None if it exists."""
    kind, _, source = for_each.partition(":")
    if kind == "items":
        if source in depends_on:
            return None
        return f"is for the items of {quoted(source)}: list that in its depends_on"
    if kind == "files":
        if matching(data["files"], source):
            return None
        return f"is for the files {quoted(source)}, and no attached file has such a name"
    if kind not in data:
        return f"has the for_each {quoted(for_each)}: it must be {_FORMS}"
    if source in data[kind]:
        return None
    meant = did_you_mean(source, data[kind])
    return f"is for the {kind} of {quoted(source)}, which is not attached{meant}"


def asks_for_each(goal: str) -> bool:
    """True if a goal has a word such as `each` or `every`."""
    return _EACH.search(goal) is not None


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Returns the names that match a pattern such as `*.pdf`, ignoring case."""
    return [name for name in names if fnmatchcase(name.casefold(), pattern.casefold())]


def item_text(item: JsonValue) -> str:
    """Returns an item as text for its subtask."""
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    return cut(text.encode("utf-8", "replace").decode().strip(), ITEM_BYTES)


def room_for(template: Subtask, others: int, affordable: int | None) -> tuple[int, str]:
    """Returns the number of items that get a subtask, and the reason for no more.

    The run already has `others` items. `affordable` is None if the budget has no limit.
    """
    rooms = [(max(0, limits.ITEMS - others), f"a run has at most {limits.ITEMS} items")]
    if template.max_items is not None:
        rooms.append((template.max_items, f"max_items is {template.max_items}"))
    if affordable is not None:
        rooms.append((affordable, "the budget has no room for them"))
    return min(rooms)


def items_of(template: Subtask, items: Sequence[str]) -> list[Subtask]:
    """Returns a subtask for each item of a template.

    The finding that lists the items is no part of their briefs.
    """
    naming = template.names_items_of
    depends_on: list[str] = []
    for other in template.depends_on:
        named = template_of(other) or other
        if named != naming:
            depends_on.append(other)

    common = {
        "for_each": None,
        "max_items": None,
        "reasoning": "",
        "depends_on": depends_on,
        "replaces": [template.id],
    }
    subtasks: list[Subtask] = []
    for number, item in enumerate(items, 1):
        own = {"id": f"{template.id}.{number}", "item": item}
        subtasks.append(template.model_copy(update={**common, **own}))
    return subtasks


def with_items(plan: Plan, items: Sequence[Subtask]) -> Plan:
    """Returns the next revision with `items`; dependents of their template depend on them."""
    ids = [item.id for item in items]
    (template,) = {old for item in items for old in item.replaces}
    subtasks = []
    for subtask in plan.subtasks:
        depends_on: list[str] = []
        for other in subtask.depends_on:
            depends_on += ids if other == template else [other]
        subtasks.append(subtask.model_copy(update={"depends_on": depends_on}))
    revision = {"subtasks": in_order([*subtasks, *items]), "revision": plan.revision + 1}
    return plan.model_copy(update=revision)


def in_order(subtasks: Sequence[Subtask]) -> list[Subtask]:
    """Returns the listed subtasks, then items in the order of their templates.

    The order does not depend on the order of expansion, which may differ after a reset.
    """
    named = [subtask for subtask in subtasks if subtask.template is None]
    places = {subtask.id: place for place, subtask in enumerate(named)}
    items = [subtask for subtask in subtasks if subtask.template is not None]
    return [*named, *sorted(items, key=lambda item: places[item.template or ""])]
