"""Corrects a plan that a model wrote: unknown names are corrected or left out.

Models fill in optional fields, and make up names for them. Rejecting each such name would cost
another plan, and small models repeat it. So only a plan that cannot run is rejected. Each change is
a sentence in the trace.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import closest, quoted
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.planning.expansion import NO_DATA, Data, for_each_problems
from temporal_supervisor.supervision.planning.plan_graph import is_subtask_id
from temporal_supervisor.supervision.planning.revisions import REPLACEABLE

_NO_ID = re.compile(r"[^A-Za-z0-9_-]+")
_ID_CHARS = 64


@dataclass(frozen=True)
class KnownNames:
    """The names that a plan may use: attachments, capabilities, data, earlier subtasks.

    `states` has the states of earlier subtasks by id.
    """

    attachments: Sequence[str] = ()
    capabilities: Sequence[str] = ()
    data: Data = field(default_factory=lambda: NO_DATA)
    states: Mapping[str, str] = field(default_factory=dict)


def put_right(plan: Plan, names: KnownNames) -> tuple[Plan, list[str]]:
    """Returns the plan with only existing names, and a sentence for each change."""
    subtasks, notes = _with_ids(plan.subtasks, names.states)
    known = [*names.states, *(subtask.id for subtask in subtasks)]
    right: list[Subtask] = []
    for subtask in subtasks:
        fixed, said = _subtask(subtask, known, names)
        right.append(fixed)
        notes += [f"{subtask.id}: {words}" for words in said]

    used = {subtask.role for subtask in right}
    new_roles = []
    for role in plan.new_roles:
        if role.name in used:
            new_roles.append(role)
        else:
            notes.append(f"no subtask has the new role {quoted(role.name)}")

    plan = plan.model_copy(update={"subtasks": right, "new_roles": new_roles})
    return _with_its_answer(plan, notes), notes


def _with_its_answer(plan: Plan, notes: list[str]) -> Plan:
    """Returns the plan with an existing subtask in `answer_from` if a finding is the answer.

    In place of a missing or unknown name it is the only subtask that no other depends on; unless
    there is exactly one, the answer is written from all findings.
    """
    if plan.aggregation != "finding":
        return plan.model_copy(update={"answer_from": None})
    single = [subtask.id for subtask in plan.subtasks if subtask.for_each is None]
    if plan.answer_subtask in single:
        return plan
    needed = {dependency for subtask in plan.subtasks for dependency in subtask.depends_on}
    last = [subtask_id for subtask_id in single if subtask_id not in needed]
    if len(last) == 1:
        notes.append(f"the answer is the finding of {last[0]}, which nothing depends on")
        return plan.model_copy(update={"answer_from": last[0]})
    notes.append("no single finding is the answer: it is written from all of them")
    return plan.model_copy(update={"aggregation": "merge", "answer_from": None})


def _with_ids(
    subtasks: Iterable[Subtask],
    states: Mapping[str, str],
) -> tuple[list[Subtask], list[str]]:
    """Returns the subtasks with valid and unique ids, and a sentence for each change.

    A dependency on a repeated id means the first subtask that has it.
    """
    right: list[Subtask] = []
    notes: list[str] = []
    renamed: dict[str, str] = {}
    taken: set[str] = set()
    for subtask in subtasks:
        written = subtask.id
        new = written
        if not is_subtask_id(written):
            new = _NO_ID.sub("-", written).strip("-")[:_ID_CHARS]
        if not new or new in taken:
            new = _free_id({*taken, *states})
        if new != written:
            notes.append(f"{new}: its id was {quoted(written)}")
            renamed.setdefault(written, new)
        taken.add(new)
        right.append(subtask.model_copy(update={"id": new}))

    # An id that a subtask still has is not one of those that were renamed.
    new_names = {old: new for old, new in renamed.items() if old not in taken}
    for subtask in right:
        subtask.depends_on = [new_names.get(name, name) for name in subtask.depends_on]
    return right, notes


def _free_id(taken: Iterable[str]) -> str:
    """Returns the first of t1, t2, ... that is not taken."""
    known = set(taken)
    number = 1
    while f"t{number}" in known:
        number += 1
    return f"t{number}"


def _subtask(
    subtask: Subtask,
    known: Sequence[str],
    names: KnownNames,
) -> tuple[Subtask, list[str]]:
    """Returns a subtask with only existing names, and a sentence for each change."""
    notes: list[str] = []
    others = [subtask_id for subtask_id in known if subtask_id != subtask.id]
    # Where capabilities choose the role, an unknown one is no slip: the planner gets it back.
    capabilities = subtask.capabilities if subtask.role == "auto" else names.capabilities
    changes = {
        # A subtask that depends on itself names one that exists: the plan is refused as a circle.
        "depends_on": _existing("subtask", subtask.depends_on, known, notes),
        "attachments": _existing("attachment", subtask.attachments, names.attachments, notes),
        "capabilities": _existing("capability", subtask.capabilities, capabilities, notes),
        "replaces": _replaceable(subtask, names.states, notes),
        "candidates": min(max(1, subtask.candidates), limits.CANDIDATES),
    }
    if changes["candidates"] != subtask.candidates:
        notes.append(f"{subtask.candidates} candidates became {changes['candidates']}")
    right = subtask.model_copy(update=changes)
    return _with_items(right, others, names.data, notes), notes


def _existing(
    kind: str,
    written: Iterable[str],
    known: Sequence[str],
    notes: list[str],
) -> list[str]:
    """Returns the existing names, each once.

    A name with few different letters is taken for the existing one.
    """
    found: dict[str, None] = {}
    for name in written:
        if name in known:
            found[name] = None
            continue
        # Ids are close to each other by nature: T1 does not mean t2.
        meant = closest(name, known) if kind != "subtask" else None
        correction = f": {quoted(meant)} is meant" if meant else ""
        notes.append(f"there is no {kind} {quoted(name)}{correction}")
        if meant:
            found[meant] = None
    return [*found]


def _replaceable(subtask: Subtask, states: Mapping[str, str], notes: list[str]) -> list[str]:
    """Returns the earlier subtasks that this one can replace."""
    found = _existing("subtask", subtask.replaces, [*states], notes)
    replaced = [old for old in found if states[old] in REPLACEABLE]
    notes += [f"{old} is {states[old]} and stays" for old in found if old not in replaced]
    return replaced


def _with_items(subtask: Subtask, others: Sequence[str], data: Data, notes: list[str]) -> Subtask:
    """Returns a subtask whose `for_each` has an existing source, or without `for_each`."""
    for_each = subtask.for_each
    if for_each is None:
        return subtask.model_copy(update={"max_items": None})
    most = subtask.max_items
    in_range = most is not None and 1 <= most <= limits.ITEMS
    subtask = subtask.model_copy(update={"max_items": most if in_range else None})
    kind, _, source = for_each.partition(":")
    if kind == "items" and source in others and source not in subtask.depends_on:
        notes.append(f"it is for the items of {source}, so it depends on that")
        subtask = subtask.model_copy(update={"depends_on": [*subtask.depends_on, source]})

    if not for_each_problems(subtask, data):
        return subtask
    meant = closest(source, data[kind]) if kind in ("rows", "lines") else None
    if meant:
        notes.append(f"there is no {quoted(source)}: {quoted(meant)} is meant")
        return subtask.model_copy(update={"for_each": f"{kind}:{meant}"})
    notes.append(f"there are no items {quoted(for_each)}: it is done once")
    return subtask.model_copy(update={"for_each": None, "max_items": None})
