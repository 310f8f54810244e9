"""The success rule: how many subtasks must complete for a run to have an answer.

`any`: at least one, optional ones count. `all` or a fraction: that share, rounded up, of the
required subtasks; of all subtasks when none is required. Only `completed` counts. Subtasks that a
later revision replaced do not count any more. A run in which nothing completed meets no rule.
"""

import math
from collections.abc import Collection, Iterable, Mapping

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.plan import Importance
from temporal_supervisor.supervision.contract.request import success_fraction
from temporal_supervisor.supervision.contract.result import SubtaskReport

Rule = str | float


def met(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> bool:
    """True if what has completed is enough; reports of other ids do not count."""
    completed = {report.id for report in reports if report.state == "completed"}
    return _enough(rule, completed, importance_by_id)


def reachable(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> bool:
    """True if it would be enough if all that has not ended completed."""
    possible = {report.id for report in reports if report.state in ("completed", "waiting", "running")}
    return _enough(rule, possible, importance_by_id)


def met_without(
    rule: Rule,
    lost: Collection[str],
    importance_by_id: Mapping[str, Importance],
) -> bool:
    """True if it would be enough if all but those that are lost completed."""
    return len(_counted(rule, importance_by_id).difference(lost)) >= needed(rule, importance_by_id)


def explain(rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]) -> str:
    """Returns one sentence for people: what the rule asks for, what completed, what is missing."""
    counted = _counted(rule, importance_by_id)
    missing = [f"{r.id} is {r.state}" for r in reports if r.id in counted and r.state != "completed"]
    sentence = f'success "{rule}" needs {needed(rule, importance_by_id)} of the {len(counted)} subtasks that count: '
    completed = f"{len(counted) - len(missing)} completed; {', '.join(missing)}"
    return one_line(sentence + completed, limits.PARAGRAPH_BYTES)


def _enough(rule: Rule, completed: set[str], importance_by_id: Mapping[str, Importance]) -> bool:
    return len(completed & _counted(rule, importance_by_id)) >= needed(rule, importance_by_id)


def _counted(rule: Rule, importance_by_id: Mapping[str, Importance]) -> set[str]:
    required = {subtask_id for subtask_id, level in importance_by_id.items() if level == "required"}
    return set(importance_by_id) if rule == "any" or not required else required


def needed(rule: Rule, importance_by_id: Mapping[str, Importance]) -> int:
    """Returns the number of the subtasks that count which must complete.

    Raises ValueError if `rule` is not a valid rule.
    """
    share = success_fraction(rule)
    return 1 if share is None else math.ceil(share * len(_counted(rule, importance_by_id))) or 1


def nothing_missing(reports: list[SubtaskReport]) -> bool:
    """True if every subtask that still counts is whole, on every level."""
    return all(is_whole(report) for report in reports if report.replaced_by is None)


def is_whole(report: SubtaskReport) -> bool:
    """True if a subtask, with all items of a template, is completed and its finding is whole."""
    return (
        report.state == "completed"
        and (report.nested is None or report.nested.status == "completed")
        and (report.finding is None or report.finding.outcome == "done")
        and (report.counts is None or report.counts.completed - report.counts.partial == report.counts.total)
    )
