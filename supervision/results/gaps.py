"""What is missing from an answer: subtasks without a finding, here and in nested runs."""

from collections.abc import Mapping

from supervision import limits
from supervision.contract.result import Gap, SubtaskReport
from supervision.text import cut, one_line

_REASON_BYTES = 600


def gaps_of(reports: Mapping[str, SubtaskReport]) -> list[Gap]:
    """Returns the gaps of subtasks by id; none where a completed subtask replaced the one that is missing.

    Of nested runs GAPS_SHOWN are listed one by one; the others are one gap for each run, with their number.
    """
    own: list[Gap] = []
    below: list[Gap] = []
    for report in reports.values():
        if report.state != "completed":
            own += [] if _replaced_well(report, reports) else [gap_of(report)]
        elif len(below) + len(report.gaps) <= limits.GAPS_SHOWN:
            below += [gap.model_copy(update={"subtask_id": f"{report.id}/{gap.subtask_id}"}) for gap in report.gaps]
        elif report.gaps:
            below.append(Gap(subtask_id=report.id, reason=f"{len(report.gaps)} gaps in the answer of its team"))
    return [*own, *below]


def _replaced_well(report: SubtaskReport, reports: Mapping[str, SubtaskReport]) -> bool:
    """True if the subtask that replaced this one, or that one's replacement, completed."""
    while report.replaced_by is not None:
        report = reports[report.replaced_by]
    return report.state == "completed"


def gap_of(report: SubtaskReport) -> Gap:
    """Returns what is missing with a subtask that did not complete."""
    error = report.error
    reason = f"it is {report.state}"
    if error is not None:
        cause = error.message if error.type.lower() == report.state else f"{error.type}: {error.message}"
        reason = cut(f"{report.state}: {cause}", _REASON_BYTES)
    description = one_line(report.description, limits.GAP_DESCRIPTION_BYTES)
    return Gap(subtask_id=report.id, description=description, reason=reason)
