"""Revisions of a plan: planned subtasks stay, new ones are added or replace failed ones.

`states` has the states of the previous revision's subtasks by id; a subtask without a state waits.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.planning.expansion import NO_DATA, Data, in_order
from temporal_supervisor.supervision.planning.plan_graph import plan_problems

_NOT_STARTED = ("waiting", "skipped")
REPLACEABLE = ("failed", "skipped")


def merge(previous: Plan, addition: Plan, states: Mapping[str, str]) -> Plan:
    """Returns the next revision: all subtasks of `previous`, then those of `addition`.

    There must be no `revision_problems`. A subtask that has not started and depends on a replaced
    one now depends on the replacement; nothing else of the previous subtasks changes.
    """
    subtasks = [*previous.subtasks, *addition.subtasks]
    replaced = _standing_in(subtasks)

    def is_free(subtask: Subtask) -> bool:
        """True if the dependencies of a subtask may change; items begin at once."""
        waits = states.get(subtask.id, "waiting") in _NOT_STARTED
        return waits and subtask.id not in replaced and subtask.template is None

    rewired = [_rewired(subtask, replaced) if is_free(subtask) else subtask for subtask in subtasks]
    return previous.model_copy(
        update={
            "subtasks": in_order(rewired),
            "new_roles": [*previous.new_roles, *addition.new_roles],
            "reasoning": addition.reasoning or previous.reasoning,
            "final_instruction": addition.final_instruction.strip() or previous.final_instruction,
            "revision": previous.revision + 1,
        }
    )


def without_repeats(
    previous: Plan,
    addition: Plan,
    states: Mapping[str, str],
) -> tuple[Plan, list[str]]:
    """Returns an addition without copies of failed subtasks, and a sentence for each.

    Their work would fail again. Subtasks that depend on one of them are left out too.
    """
    earlier_ones = [each for each in previous.subtasks if states.get(each.id) == "failed"]
    failed = {(each.role, _words(each)): each.id for each in earlier_ones}
    kept: list[Subtask] = []
    notes: list[str] = []
    gone: set[str] = set()
    for subtask in addition.subtasks:
        earlier = failed.get((subtask.role, _words(subtask)))
        if earlier is not None:
            notes.append(f"{subtask.id} is {earlier} again, which failed")
        elif gone.intersection(subtask.depends_on):
            notes.append(f"{subtask.id} depends on it")
        else:
            kept.append(subtask)
            continue
        gone.add(subtask.id)
    return addition.model_copy(update={"subtasks": kept}), notes


def without_copies(plan: Plan) -> tuple[Plan, list[str]]:
    """Returns a plan without copies of its own subtasks, and a sentence for each.

    A copy has the role and the words of an earlier subtask. Small models write one subtask again
    and again until they are stopped, each depending on the one before. Dependents of a copy depend
    on the original.
    """
    first: dict[tuple[object, ...], str] = {}
    originals: dict[str, str] = {}
    kept: list[Subtask] = []
    notes: list[str] = []
    for subtask in plan.subtasks:
        asked = (subtask.role, _words(subtask), tuple(subtask.attachments), subtask.for_each)
        original = first.setdefault(asked, subtask.id)
        if original == subtask.id:
            kept.append(subtask)
            continue
        originals[subtask.id] = original
        notes.append(f"{subtask.id} asks for the same as {original}")
    if not originals:
        return plan, []

    for at, subtask in enumerate(kept):
        needed = dict.fromkeys(originals.get(each, each) for each in subtask.depends_on)
        needed.pop(subtask.id, None)
        kept[at] = subtask.model_copy(update={"depends_on": [*needed]})
    return plan.model_copy(update={"subtasks": kept}), notes


def _words(subtask: Subtask) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", subtask.description.casefold()))


def replacements(subtasks: Iterable[Subtask]) -> dict[str, list[str]]:
    """Returns the ids of the subtasks that replaced each subtask, by its id."""
    replaced: dict[str, list[str]] = {}
    for subtask in subtasks:
        for old in subtask.replaces:
            replaced.setdefault(old, []).append(subtask.id)
    return replaced


def _standing_in(subtasks: Iterable[Subtask]) -> dict[str, list[str]]:
    """Returns the substitutes of replaced subtasks for their dependents.

    A substitute is an item of a template, or the single subtask that replaced another.
    """
    items = [subtask for subtask in subtasks if subtask.template]
    named = replacements(subtask for subtask in subtasks if not subtask.template)
    # A subtask that replaced a template replaced each of its items.
    whole: dict[str, list[str]] = {}
    for item in items:
        for template in item.replaces:
            if template in named:
                whole[item.id] = named[template]
    return {**replacements(items), **named, **whole}


def revision_problems(
    previous: Plan,
    addition: Plan,
    max_subtasks: int,
    states: Mapping[str, str],
    attachments: Iterable[str] = (),
    data: Data = NO_DATA,
) -> list[str]:
    """Returns the problems of adding `addition`, a sentence each.

    `max_subtasks` limits the number of subtasks in both together.
    """
    if not addition.subtasks:
        return ["the revision adds no subtasks"]
    previous = previous.folded()
    known = {subtask.id for subtask in previous.subtasks}
    replaced = replacements(previous.subtasks)
    problems: list[str] = []
    accepted: list[Subtask] = []
    for subtask in addition.subtasks:
        replaces = []
        for old in dict.fromkeys(subtask.replaces):
            state = states.get(old, "waiting") if old in known else None
            reason = _replacing_problem(subtask, old, state, replaced.get(old, []))
            if reason is None:
                replaces.append(old)
            else:
                problems.append(f"subtask {quoted(subtask.id)} {reason}")
        if subtask.id in known:
            taken = f"subtask id {quoted(subtask.id)} is in the plan already"
            problems.append(f"{taken}: give new subtasks new ids")
            continue
        accepted.append(subtask.model_copy(update={"replaces": replaces}))
    # What is accepted is judged as part of the whole plan: its ids, dependencies and circles.
    whole = merge(previous, addition.model_copy(update={"subtasks": accepted}), states)
    return problems + plan_problems(whole, max_subtasks, attachments, data)


def _replacing_problem(
    subtask: Subtask,
    old: str,
    state: str | None,
    replaced_by: Sequence[str],
) -> str | None:
    """Returns the reason why a subtask may not replace an old one; None if it may.

    `state` is None if the old subtask is unknown.
    """
    if state is None:
        return f"replaces {quoted(old)}, which is not in the plan so far"
    if replaced_by:
        newer = ", ".join(replaced_by)
        return f"replaces {quoted(old)}, which {newer} replaced before: replace that"
    if state not in REPLACEABLE:
        return f"replaces {quoted(old)}, which is {state}: only failed or skipped ones can be"
    if old in subtask.depends_on:
        return f"depends on {quoted(old)}, which it replaces"
    return None


def _rewired(subtask: Subtask, replaced: Mapping[str, list[str]]) -> Subtask:
    """Returns a subtask that depends on the latest replacements of its dependencies."""
    depends_on: dict[str, None] = {}
    for old in subtask.depends_on:
        for latest in _latest(old, replaced):
            # A dependency on itself as it was planned stays: the plan is refused for its circle.
            is_planned = latest == old
            if latest != subtask.id or is_planned:
                depends_on[latest] = None
    return subtask.model_copy(update={"depends_on": list(depends_on)})


def _latest(subtask_id: str, replaced: Mapping[str, list[str]]) -> list[str]:
    """Returns the replacements of a subtask that were not replaced themselves.

    This ends, because a replacement is always newer.
    """
    if subtask_id not in replaced:
        return [subtask_id]
    latest: list[str] = []
    for new in replaced[subtask_id]:
        latest += _latest(new, replaced)
    return latest
