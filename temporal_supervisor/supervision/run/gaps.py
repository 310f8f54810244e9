"""The gaps of an answer, by subtask; the items of a template share one."""

from collections.abc import Mapping

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.result import Gap, Problem, SubtaskReport

_ITEMS_NAMED = 20  # of those that are missing


def is_missing(report: SubtaskReport) -> bool:
    """True if a subtask, or an item of a template, did not complete."""
    if report.counts is not None:
        return report.counts.completed < report.counts.total
    return report.state != "completed"


def gaps_of(reports: Mapping[str, SubtaskReport], left_out: Mapping[str, str]) -> list[Gap]:
    """Returns the gaps of a run in the order of its subtasks, then those of nested runs.

    A subtask has none once a completed one has replaced it. The items of a template share one;
    `left_out` has the reasons why not every item got a subtask, by template. GAPS_SHOWN gaps of
    nested runs are listed singly. Every further nested run has one gap with the number of its gaps.
    """
    own: list[Gap] = []
    below: list[Gap] = []
    for report in reports.values():
        if is_missing(report):
            if not report.template and not _replaced_well(report, reports):
                own.append(gap_of(report, reports, left_out))
        elif len(below) + len(report.gaps) <= limits.GAPS_SHOWN:
            below += [_of_nested(report.id, gap) for gap in report.gaps]
        elif report.gaps:
            reason = f"{len(report.gaps)} gaps in the answer of its team"
            below.append(Gap(subtask_id=report.id, reason=reason))
    return [*own, *below]


def _of_nested(subtask_id: str, gap: Gap) -> Gap:
    """Returns a gap of a subtask's nested run, with its id in the whole tree."""
    return gap.model_copy(update={"subtask_id": f"{subtask_id}/{gap.subtask_id}"})


def _replaced_well(report: SubtaskReport, reports: Mapping[str, SubtaskReport]) -> bool:
    """True if the last replacement of a subtask completed."""
    while report.replaced_by is not None:
        report = reports[report.replaced_by]
    return not is_missing(report)


def gap_of(
    report: SubtaskReport,
    reports: Mapping[str, SubtaskReport],
    left_out: Mapping[str, str],
) -> Gap:
    """Returns the gap of a subtask, or of a template's items, that did not complete."""
    if report.counts is not None:
        reason = _reason_of_items(report, report.counts, reports, left_out)
    elif report.error is not None:
        reason = _reason_of_error(report.state, report.error)
    else:
        reason = f"it is {report.state}"
    return Gap(subtask_id=report.id, description=report.description, reason=reason)


def _reason_of_items(
    template: SubtaskReport,
    counts: Counts,
    reports: Mapping[str, SubtaskReport],
    left_out: Mapping[str, str],
) -> str:
    """Returns the reason of a template's gap: how many items are missing, and which."""
    items = [report for report in reports.values() if report.template == template.id]
    missing = [item.id for item in items if item.state != "completed"]
    reason = f"{counts.total - counts.completed} of {counts.total} items"
    if missing:
        reason += f": {_named(missing)}"
    if template.id in left_out:
        reason += f"; {left_out[template.id]}"
    return reason


def _reason_of_error(state: str, error: Problem) -> str:
    is_cancelled_by_a_person = state == "skipped" and error.type == ErrorKind.CANCELLED
    if is_cancelled_by_a_person:
        return error.message
    # "cancelled: Cancelled: ..." would name the state twice.
    is_named_by_state = error.type.lower() == state
    cause = error.message if is_named_by_state else f"{error.type}: {error.message}"
    return f"{state}: {cause}"


def partial_gaps(reports: Mapping[str, SubtaskReport]) -> list[Gap]:
    """Returns the gaps of partial findings whose subtasks still count, one per template."""
    parts: dict[str, list[str]] = {}
    for report in reports.values():
        finding = report.finding
        if finding is None or finding.outcome != "partial" or report.state != "completed":
            continue
        if report.gaps or report.replaced_by is not None:
            continue
        missing = "; ".join(finding.limitations) or f"only a part: {finding.summary}"
        author = report.id if report.template else report.role
        parts.setdefault(report.template or report.id, []).append(f"{author}: {missing}")

    gaps: list[Gap] = []
    for subtask_id, missing_parts in parts.items():
        description = reports[subtask_id].description
        reason = _named(missing_parts)
        gaps.append(Gap(subtask_id=subtask_id, description=description, reason=reason))
    return gaps


def _named(items: list[str]) -> str:
    more = ["..."] if len(items) > _ITEMS_NAMED else []
    return ", ".join([*items[:_ITEMS_NAMED], *more])
