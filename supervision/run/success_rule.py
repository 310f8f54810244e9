"""The success rule: how many subtasks must complete for a run to have an answer.

`any`: at least one, optional ones count. `all` or a fraction: that share, rounded up, of the required subtasks; of
all subtasks when none is required. Skipped, failed and cancelled is not completed. Subtasks that a later revision
replaced are not asked for any more. Nothing at all never meets a rule.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from supervision.contract.plan import Importance, Plan, Subtask
from supervision.contract.request import success_fraction
from supervision.contract.result import SubtaskReport
from supervision.text import one_line

Rule = str | float

_OPEN = ("waiting", "running")


def importance(plan: Plan) -> dict[str, Importance]:
    """The subtasks that the plan's last revision asks for, by id."""
    replaced = {old for subtask in plan.subtasks for old in subtask.replaces}
    return {subtask.id: subtask.importance for subtask in plan.subtasks if subtask.id not in replaced}


def needed(rule: Rule, subtasks: Sequence[Subtask]) -> int | None:
    """How many of the subtasks that count must complete; None for `any`, where one of whatever kind will do.

    ValueError: the rule is none.
    """
    return _needed(rule, {subtask.id: subtask.importance for subtask in subtasks})


def met(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> bool:
    """Whether what has completed is enough; reports of other ids do not count."""
    completed = {report.id for report in reports if report.state == "completed"}
    return _enough(rule, completed, importance_by_id)


def reachable(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> bool:
    """Whether it would be enough if all that has not ended completed."""
    possible = {report.id for report in reports if report.state == "completed" or report.state in _OPEN}
    return _enough(rule, possible, importance_by_id)


def explain(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> str:
    """One sentence for people: what the rule asks for, what there is, what is missing."""
    counted = _counted(rule, importance_by_id)
    states = {report.id: report.state for report in reports if report.id in counted}
    completed = sum(state == "completed" for state in states.values())
    count = _needed(rule, importance_by_id)
    kind = "required subtasks" if len(counted) < len(importance_by_id) else "subtasks"
    wants = "one of" if count is None else f"{count} of"
    missing = ", ".join(f"{id} is {state}" for id, state in states.items() if state != "completed")
    said = f'success "{rule}" needs {wants} {len(counted)} {kind}: {completed} completed'
    return one_line(f"{said}; {missing}" if missing else said, 600)


def _enough(rule: Rule, completed: set[str], importance_by_id: Mapping[str, Importance]) -> bool:
    return len(completed & _counted(rule, importance_by_id)) >= (_needed(rule, importance_by_id) or 1)


def _counted(rule: Rule, importance_by_id: Mapping[str, Importance]) -> set[str]:
    """The ids that count under the rule."""
    required = {id for id, level in importance_by_id.items() if level == "required"}
    return set(importance_by_id) if success_fraction(rule) is None or not required else required


def _needed(rule: Rule, importance_by_id: Mapping[str, Importance]) -> int | None:
    share = success_fraction(rule)
    return None if share is None else math.ceil(share * len(_counted(rule, importance_by_id)))
