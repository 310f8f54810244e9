"""What an answer rests on, counted from the subtasks of a run, and what it claims without support."""

from collections.abc import Mapping, Sequence

from supervision import limits
from supervision.contract.plan import Importance
from supervision.contract.result import Contradiction, Gap, SubtaskReport, Unsupported
from supervision.grounding.confidence import Basis
from supervision.results.answer import Answer


def basis_of(
    answer: Answer,
    reports: Sequence[SubtaskReport],
    importance: Mapping[str, Importance],
    contradictions: Sequence[Contradiction],
    open_points: Sequence[Gap],
) -> Basis:
    """Returns the basis of an answer; `reports` are the subtasks of the plan's last revision."""
    required = [report for report in reports if importance.get(report.id) != "optional"]
    optional = [report for report in reports if importance.get(report.id) == "optional"]
    cited = {subtask_id for citation in answer.citations for subtask_id in citation.subtask_ids}
    doubts = [
        report.finding.confidence
        for report in reports
        if report.id in cited and report.finding and report.finding.confidence is not None
    ]
    return Basis(
        required=len(required),
        optional=len(optional),
        missing_required=_missing(required),
        missing_optional=_missing(optional),
        partial_required=_partial(required),
        partial_optional=_partial(optional),
        unsupported_in_answer=len(answer.unsupported),
        unsupported_in_findings=sum(len(report.finding.unsupported) for report in reports if report.finding),
        unsettled=sum(not item.resolution.strip() for item in contradictions),
        open_points=len(open_points),
        stale=sum(report.stale for report in reports),
        citations=len(answer.citations),
        own=doubts,
    )


def unsupported_in(answer: Answer, reports: Sequence[SubtaskReport]) -> list[Unsupported]:
    """Returns what the answer and the findings claim and nothing supports, the answer's first."""
    own = [Unsupported(text=text, where="answer") for text in answer.unsupported]
    found = [
        Unsupported(text=text, where=report.id)
        for report in reports
        if report.finding
        for text in report.finding.unsupported
    ]
    return [*own, *found][: limits.UNSUPPORTED_LISTED]


def _missing(reports: Sequence[SubtaskReport]) -> int:
    return sum(report.state != "completed" for report in reports)


def _partial(reports: Sequence[SubtaskReport]) -> int:
    finished = [report.finding for report in reports if report.state == "completed" and report.finding is not None]
    return sum(finding.outcome == "partial" for finding in finished)
