"""The upper bound of a run's confidence, computed from the basis of its answer, and what it claims without support."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from supervision.base import limits
from supervision.contract.plan import Importance
from supervision.contract.result import Contradiction, Gap, SubtaskReport, Unsupported
from supervision.results.answer import Answer

SURE = 0.75  # from here on a reader takes an answer for granted
_UNSUPPORTED_IN_ANSWER = 0.5
_UNSUPPORTED_IN_FINDING = 0.65
_EACH_MORE = 0.05
_FURTHER_KIND = 0.85  # for each kind of fault beside the worst one: two kinds are worse than one
_LEAST = 0.1
_KNOWLEDGE = 0.7  # a finding from the model's own knowledge, which nothing was compared with
_UNSETTLED = 0.6  # findings disagree and nothing decided between them
_OPEN_POINT = 0.65  # the reviewer's last word was that something falls short
_STALE = 0.7  # a finding uses one that was changed afterwards
_UNCITED = 0.6  # no statement of the answer names its findings
_REQUIRED, _OPTIONAL = 1.0, 0.5  # shares of the plan
_PARTIAL = 0.5  # of what a complete finding counts


@dataclass(frozen=True)
class Basis:
    """The basis of an answer. Counts are of subtasks of the plan's last revision, `own` what cited findings claim.

    `partial_required` and `partial_optional` are completed with a finding that its author calls partial. `weakest` is
    the lowest confidence that a required finding claims, `from_knowledge` counts findings from the model's knowledge.
    """

    required: int = 0
    optional: int = 0
    missing_required: int = 0
    missing_optional: int = 0
    partial_required: int = 0
    partial_optional: int = 0
    unsupported_in_answer: int = 0
    unsupported_in_findings: int = 0
    unsettled: int = 0
    open_points: int = 0
    stale: int = 0
    citations: int = 0
    own: Sequence[float] = ()
    weakest: float = 1.0
    from_knowledge: int = 0


def ceiling(basis: Basis) -> float:
    """Returns the highest confidence that the answer may claim, 0 to 1; 0 if nothing of its plan completed."""
    kinds = (
        (basis.unsupported_in_answer, _UNSUPPORTED_IN_ANSWER - _EACH_MORE * (basis.unsupported_in_answer - 1)),
        (basis.unsupported_in_findings, _UNSUPPORTED_IN_FINDING - _EACH_MORE * (basis.unsupported_in_findings - 1)),
        (basis.unsettled, _UNSETTLED),
        (basis.open_points, _OPEN_POINT),
        (basis.stale, _STALE),
        (basis.required + basis.optional and not basis.citations, _UNCITED),
    )
    faults = [bound for count, bound in kinds if count]
    doubts = [0.5 + basis.weakest / 2, *([_KNOWLEDGE] if basis.from_knowledge else [])]
    if basis.own:
        doubts.append(sum(basis.own) / len(basis.own))
    bound = min([*faults, *doubts]) * _FURTHER_KIND ** max(0, len(faults) - 1)
    share = _share(basis)
    return round(share and share * max(_LEAST, bound), 2)


def _share(basis: Basis) -> float:
    """Returns how much of the plan the answer has, by weight; an answer without a plan has all of it."""
    planned = _REQUIRED * basis.required + _OPTIONAL * basis.optional
    if not planned:
        return 1.0
    missing = basis.missing_required + _PARTIAL * basis.partial_required
    missing_optional = basis.missing_optional + _PARTIAL * basis.partial_optional
    return max(0.0, (planned - _REQUIRED * missing - _OPTIONAL * missing_optional) / planned)


def basis_of(
    answer: Answer,
    reports: Sequence[SubtaskReport],
    importance: Mapping[str, Importance],
    contradictions: Sequence[Contradiction],
    open_points: Sequence[Gap],
) -> Basis:
    """Returns the basis of an answer; `reports` are the subtasks of the plan's last revision."""
    required = [report for report in reports if importance.get(report.id) == "required"]
    optional = [report for report in reports if importance.get(report.id) == "optional"]
    cited = {subtask_id for citation in answer.citations for subtask_id in citation.subtask_ids}
    findings = {report.id: report.finding for report in reports if report.finding}
    claimed = {subtask_id: f.confidence for subtask_id, f in findings.items() if f.confidence is not None}
    return Basis(
        required=len(required),
        optional=len(optional),
        missing_required=sum(report.state != "completed" for report in required),
        missing_optional=sum(report.state != "completed" for report in optional),
        partial_required=_partial(required),
        partial_optional=_partial(optional),
        unsupported_in_answer=len(answer.unsupported) + len(answer.unsupported_fields),
        unsupported_in_findings=sum(len(finding.unsupported) for finding in findings.values()),
        unsettled=sum(not item.resolution.strip() for item in contradictions),
        open_points=len(open_points),
        stale=sum(report.stale for report in reports),
        citations=len(answer.citations),
        own=[confidence for subtask_id, confidence in claimed.items() if subtask_id in cited],
        weakest=min((claimed[report.id] for report in required if report.id in claimed), default=1.0),
        from_knowledge=sum(finding.grounding == "knowledge" for finding in findings.values()),
    )


def unsupported_in(answer: Answer, reports: Sequence[SubtaskReport]) -> list[Unsupported]:
    """Returns what the answer and the findings claim and nothing supports, the answer's first."""
    of_findings = {report.id: report.finding.unsupported for report in reports if report.finding}
    own = [*(Unsupported(text=text, where="answer") for text in answer.unsupported), *answer.unsupported_fields]
    found = [Unsupported(text=text, where=subtask_id) for subtask_id, texts in of_findings.items() for text in texts]
    return [*own, *found][: limits.UNSUPPORTED_LISTED]


def _partial(reports: Sequence[SubtaskReport]) -> int:
    completed = [report for report in reports if report.state == "completed"]
    findings = [report.finding for report in completed if report.finding is not None]
    templates = [report.counts for report in completed if report.counts is not None]
    of_findings = sum(finding.outcome == "partial" for finding in findings)
    return of_findings + sum(counts.completed < counts.total for counts in templates)
