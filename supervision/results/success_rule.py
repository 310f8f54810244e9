"""The success rule: how many subtasks must complete for a run to have an answer.

`any`: at least one, optional ones count. `all` or a fraction: that share, rounded up, of the required subtasks; of
all subtasks when none is required. Only `completed` counts. Subtasks that a later revision replaced do not count any
more. A run in which nothing completed meets no rule.
"""

import math
from collections.abc import Iterable, Mapping

from supervision.base import limits
from supervision.base.text import one_line
from supervision.contract.plan import Importance
from supervision.contract.request import success_fraction
from supervision.contract.result import SubtaskReport

Rule = str | float


def met(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> bool:
    """True if what has completed is enough; reports of other ids do not count."""
    completed = {report.id for report in reports if report.state == "completed"}
    return len(completed & _counted(rule, importance_by_id)) >= (needed(rule, importance_by_id) or 1)


def reachable(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> bool:
    """True if it would be enough if all that has not ended completed."""
    best = [r.model_copy(update={"state": "completed"}) if r.state in ("waiting", "running") else r for r in reports]
    return met(rule, best, importance_by_id)


def explain(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> str:
    """Returns one sentence for people: what the rule asks for, what completed, what is missing."""
    counted = _counted(rule, importance_by_id)
    states = {report.id: report.state for report in reports if report.id in counted}
    completed = sum(state == "completed" for state in states.values())
    count = needed(rule, importance_by_id)
    kind = "required subtasks" if len(counted) < len(importance_by_id) else "subtasks"
    wants = "one of" if count is None else f"{count} of"
    missing = ", ".join(f"{subtask_id} is {state}" for subtask_id, state in states.items() if state != "completed")
    sentence = f'success "{rule}" needs {wants} {len(counted)} {kind}: {completed} completed'
    return one_line(f"{sentence}; {missing}" if missing else sentence, limits.PARAGRAPH_BYTES)


def _counted(rule: Rule, importance_by_id: Mapping[str, Importance]) -> set[str]:
    """Returns the ids that count under the rule."""
    required = {subtask_id for subtask_id, level in importance_by_id.items() if level == "required"}
    return set(importance_by_id) if rule == "any" or not required else required


def needed(rule: Rule, importance_by_id: Mapping[str, Importance]) -> int | None:
    """Returns how many of the subtasks that count must complete; None for `any`, where one of any kind is enough.

    Raises ValueError if `rule` is not a valid rule.
    """
    counted, share = len(_counted(rule, importance_by_id)), success_fraction(rule)
    return None if share is None else math.ceil(share * counted)


def nothing_missing(reports: list[SubtaskReport]) -> bool:
    """True if every subtask that still counts is whole, on every level."""
    return all(is_whole(report) for report in reports if report.replaced_by is None)


def is_whole(report: SubtaskReport) -> bool:
    """True if a subtask is completed, with all items of a template, and nothing is missing from its finding."""
    return (
        report.state == "completed"
        and (report.nested is None or report.nested.status == "completed")
        and (report.finding is None or report.finding.outcome == "done")
        and (report.counts is None or report.counts.completed - report.counts.partial == report.counts.total)
    )
