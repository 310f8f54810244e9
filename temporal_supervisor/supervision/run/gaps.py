"""Gaps: what is missing from an answer, by subtask; those of a template's items are one."""

from collections.abc import Mapping

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.result import Gap, SubtaskReport

_ITEMS_NAMED = 20  # of those that are missing


def is_missing(report: SubtaskReport) -> bool:
    """True if a subtask, or an item of a template, did not complete."""
    if report.counts is not None:
        return report.counts.completed < report.counts.total
    return report.state != "completed"


def gaps_of(reports: Mapping[str, SubtaskReport], left_out: Mapping[str, str]) -> list[Gap]:
    """Returns the gaps of subtasks by id, none where a completed subtask replaced the missing one.

    Those of a template's items are one; `left_out` says of which templates not every item got a
    subtask. GAPS_SHOWN of nested runs are listed one by one; the others are one gap for each run,
    with their number.
    """
    own: list[Gap] = []
    below: list[Gap] = []
    for report in reports.values():
        if is_missing(report):
            if not report.template and not _replaced_well(report, reports):
                own.append(gap_of(report, reports, left_out))
        elif len(below) + len(report.gaps) <= limits.GAPS_SHOWN:
            below += [gap.model_copy(update={"subtask_id": f"{report.id}/{gap.subtask_id}"}) for gap in report.gaps]
        elif report.gaps:
            below.append(Gap(subtask_id=report.id, reason=f"{len(report.gaps)} gaps in the answer of its team"))
    return [*own, *below]


def _replaced_well(report: SubtaskReport, reports: Mapping[str, SubtaskReport]) -> bool:
    """True if the subtask that replaced this one, or that one's replacement, completed."""
    while report.replaced_by is not None:
        report = reports[report.replaced_by]
    return not is_missing(report)


def gap_of(report: SubtaskReport, reports: Mapping[str, SubtaskReport], left_out: Mapping[str, str]) -> Gap:
    """Returns the gap that a subtask leaves, or items of a template, if it did not complete."""
    error = report.error
    reason = f"it is {report.state}"
    if (counts := report.counts) is not None:
        items = [r.id for r in reports.values() if r.template == report.id and r.state != "completed"]
        reason = f"{counts.total - counts.completed} of {counts.total} items"
        reason += f": {_named(items)}" if items else ""
        reason += f"; {left_out[report.id]}" if report.id in left_out else ""
    elif error is not None:
        cause = error.message if error.type.lower() == report.state else f"{error.type}: {error.message}"
        by_a_person = report.state == "skipped" and error.type == ErrorKind.CANCELLED
        reason = error.message if by_a_person else f"{report.state}: {cause}"
    return Gap(subtask_id=report.id, description=report.description, reason=reason)


def partial_gaps(reports: Mapping[str, SubtaskReport]) -> list[Gap]:
    """Returns the gaps of partial findings whose subtasks count still.

    Those of a template's items are one.
    """
    parts: dict[str, list[str]] = {}
    for report in reports.values():
        finding = report.finding
        is_partial = report.state == "completed" and finding and finding.outcome == "partial"
        if finding and is_partial and not report.gaps and report.replaced_by is None:
            why = "; ".join(finding.limitations) or f"only a part: {finding.summary}"
            named = report.id if report.template else report.role
            parts.setdefault(report.template or report.id, []).append(f"{named}: {why}")
    return [Gap(subtask_id=id_, description=reports[id_].description, reason=_named(why)) for id_, why in parts.items()]


def _named(items: list[str]) -> str:
    return ", ".join([*items[:_ITEMS_NAMED], *(["..."] if len(items) > _ITEMS_NAMED else [])])
