"""Revisions of a plan: append-only. What was planned stays, new subtasks come on top and may replace failed ones.

`states` maps the ids of the previous revision to where their subtasks stand; one that is not named waits.
"""

from collections.abc import Iterable, Mapping

from supervision.contract.plan import Plan, Subtask
from supervision.planning import plan_graph
from supervision.text import one_line

_NOT_STARTED = ("waiting", "skipped")
_REPLACEABLE = ("failed", "skipped")


def merge(previous: Plan, addition: Plan, states: Mapping[str, str]) -> Plan:
    """The next revision: all subtasks of `previous`, then those of `addition`, which must be without `problems`.

    Where a subtask that has not started depends on a replaced one, it now depends on the replacement; nothing else
    of the previous subtasks changes.
    """
    subtasks = [*previous.subtasks, *addition.subtasks]
    replaced = replacements(subtasks)
    return previous.model_copy(
        update={
            "subtasks": [
                _rewired(subtask, replaced)
                if states.get(subtask.id, "waiting") in _NOT_STARTED and subtask.id not in replaced
                else subtask
                for subtask in subtasks
            ],
            "new_roles": [*previous.new_roles, *addition.new_roles],
            "final_instruction": addition.final_instruction.strip() or previous.final_instruction,
            "revision": previous.revision + 1,
        }
    )


def replacements(subtasks: Iterable[Subtask]) -> dict[str, list[str]]:
    """The ids of the subtasks that took the place of each replaced one."""
    found: dict[str, list[str]] = {}
    for subtask in subtasks:
        for old in subtask.replaces:
            found.setdefault(old, []).append(subtask.id)
    return found


def problems(
    previous: Plan,
    addition: Plan,
    max_subtasks: int,
    states: Mapping[str, str],
    attachments: Iterable[str] = (),
) -> list[str]:
    """Everything wrong with adding `addition`, each in one sentence that its author can act on.

    `max_subtasks` holds for both together. The rules of `plan_graph.problems` hold for the whole.
    """
    if not addition.subtasks:
        return ["the revision adds no subtasks"]
    known = {subtask.id for subtask in previous.subtasks}
    replaced = replacements(previous.subtasks)
    found, accepted = [], []
    for subtask in addition.subtasks:
        own = {old: _replacing(subtask, old, known, replaced, states) for old in dict.fromkeys(subtask.replaces)}
        found += [problem for problem in own.values() if problem]
        if subtask.id in known:
            found.append(f"subtask id '{one_line(subtask.id, 60)}' is in the plan already: give new subtasks new ids")
        else:
            sound = [old for old, problem in own.items() if not problem]
            accepted.append(subtask.model_copy(update={"replaces": sound}))
    whole = merge(previous, addition.model_copy(update={"subtasks": accepted}), states)
    return found + plan_graph.problems(whole, max_subtasks, attachments)


def _replacing(
    subtask: Subtask,
    old: str,
    known: set[str],
    replaced: Mapping[str, list[str]],
    states: Mapping[str, str],
) -> str | None:
    """What is wrong with `subtask` taking the place of `old`."""
    name, shown = f"subtask '{one_line(subtask.id, 60)}'", one_line(old, 60)
    if old not in known:
        return f"{name} replaces '{shown}', which is not in the plan so far"
    if old in replaced:
        return f"{name} replaces '{shown}', which {', '.join(replaced[old])} replaced before: replace that"
    if states.get(old, "waiting") not in _REPLACEABLE:
        return f"{name} replaces '{shown}', which is {states.get(old, 'waiting')}: only failed or skipped ones can be"
    if old in subtask.depends_on:
        return f"{name} depends on '{shown}', which it replaces"
    return None


def _rewired(subtask: Subtask, replaced: Mapping[str, list[str]]) -> Subtask:
    depends_on = [
        new for old in subtask.depends_on for new in _latest(old, replaced) if new != subtask.id or new == old
    ]
    return subtask.model_copy(update={"depends_on": list(dict.fromkeys(depends_on))})


def _latest(subtask_id: str, replaced: Mapping[str, list[str]]) -> list[str]:
    """What stands in the place of a subtask now; a replacement is always newer, so this ends."""
    if subtask_id not in replaced:
        return [subtask_id]
    return [last for new in replaced[subtask_id] for last in _latest(new, replaced)]
