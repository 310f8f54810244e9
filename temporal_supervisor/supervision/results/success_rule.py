"""The success rule: the number of subtasks that must complete for an answer.

`any` means at least one, optional ones included. `all` or a fraction means that share, rounded up,
of the required subtasks, or of all subtasks if none is required. Only `completed` counts. Subtasks
that a later revision replaced do not count. A run in which nothing completed meets no rule.
"""

import math
from collections.abc import Iterable, Mapping, Set

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.plan import Importance
from temporal_supervisor.supervision.contract.request import success_fraction
from temporal_supervisor.supervision.contract.result import SubtaskReport

Rule = str | float


def is_met(
    rule: Rule, reports: Iterable[SubtaskReport], importance_by_id: Mapping[str, Importance]
) -> bool:
    """True if enough subtasks have completed; reports of unknown ids are ignored."""
    completed = {report.id for report in reports if report.state == "completed"}
    return _enough(rule, completed, importance_by_id)


def is_reachable(
    rule: Rule,
    reports: Iterable[SubtaskReport],
    importance_by_id: Mapping[str, Importance],
) -> bool:
    """True if the rule would be met if every open subtask completed."""
    possible = {
        report.id for report in reports if report.state in ("completed", "waiting", "running")
    }
    return _enough(rule, possible, importance_by_id)


def is_met_without(
    rule: Rule,
    lost: Set[str],
    importance_by_id: Mapping[str, Importance],
) -> bool:
    """True if the rule would be met if every subtask except the lost ones completed."""
    return _enough(rule, importance_by_id.keys() - lost, importance_by_id)


def explain_rule(
    rule: Rule,
    reports: Iterable[SubtaskReport],
    importance_by_id: Mapping[str, Importance],
) -> str:
    """Returns a sentence with the required, the completed and the missing subtasks."""
    counted = _counted(rule, importance_by_id)
    own = [report for report in reports if report.id in counted]
    missing = [f"{report.id} is {report.state}" for report in own if report.state != "completed"]
    least = needed_subtasks(rule, importance_by_id)
    sentence = (
        f'success "{rule}" needs {least} of the {len(counted)} subtasks that count: '
        f"{len(counted) - len(missing)} completed; {', '.join(missing)}"
    )
    return one_line(sentence, limits.PARAGRAPH_BYTES)


def _enough(rule: Rule, completed: Set[str], importance_by_id: Mapping[str, Importance]) -> bool:
    counted = completed & _counted(rule, importance_by_id)
    return len(counted) >= needed_subtasks(rule, importance_by_id)


def _counted(rule: Rule, importance_by_id: Mapping[str, Importance]) -> set[str]:
    """Returns the subtasks that count: the required ones, or all under the rule `any`."""
    required = {id_ for id_, importance in importance_by_id.items() if importance == "required"}
    if rule == "any" or not required:
        return set(importance_by_id)
    return required


def needed_subtasks(rule: Rule, importance_by_id: Mapping[str, Importance]) -> int:
    """Returns the number of subtasks that must complete, at least one.

    Raises ValueError if `rule` is not a valid rule.
    """
    share = success_fraction(rule)
    if share is None:
        return 1
    least = math.ceil(share * len(_counted(rule, importance_by_id)))
    return max(1, least)


def nothing_missing(reports: list[SubtaskReport]) -> bool:
    """True if every subtask that counts is whole, on every level."""
    return all(is_whole(report) for report in reports if report.replaced_by is None)


def is_whole(report: SubtaskReport) -> bool:
    """True if a subtask, with all items of a template, completed with a whole finding."""
    if report.state != "completed":
        return False
    if report.nested is not None and report.nested.status != "completed":
        return False
    if report.finding is not None and report.finding.outcome != "done":
        return False
    counts = report.counts
    return counts is None or counts.completed - counts.partial == counts.total
