"""The upper bound of a run's confidence, computed from the basis of its answer, and what it claims without support."""

import re
from collections.abc import Mapping, Sequence

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.plan import Importance
from temporal_supervisor.supervision.contract.result import (
    Contradiction,
    Doubt,
    Gap,
    SubtaskReport,
    Unsupported,
)
from temporal_supervisor.supervision.results.answer import Answer

SURE = 0.75  # from here on a reader takes an answer for granted
DOUBTFUL = 0.5  # below it a reader is warned
# Calibrated by tests/faults/calibration.py: of a hundred answers with such a claim hardly one is
# right.
_UNSUPPORTED_IN_ANSWER = 0.45
# A query that does not ask what its subtask asks proves its figures, and nothing else.
_DOUBTED = 0.45
_UNSUPPORTED_IN_FINDING = 0.65  # which the answer does not repeat
_EACH_MORE = 0.05
_FURTHER_KIND = 0.85  # for each kind of fault beside the worst one: two kinds are worse than one
_LEAST = 0.1
_KNOWLEDGE = 0.7  # a finding from the model's own knowledge, which nothing was compared with
_UNSETTLED = 0.6  # findings disagree and nothing decided between them
_OPEN_POINT = 0.65  # the reviewer's last word was that something falls short
_STALE = 0.7  # a finding uses one that was changed afterwards
_UNCITED = 0.6  # no statement of the answer names its findings
_WEIGHTS: dict[Importance | None, float] = {"required": 1.0, "optional": 0.5}  # in the plan
_PARTIAL = 0.5  # of what a complete finding counts


def ceiling(
    answer: Answer,
    reports: Sequence[SubtaskReport],
    importance: Mapping[str, Importance],
    contradictions: Sequence[Contradiction],
    open_points: Sequence[Gap],
) -> float:
    """Returns the highest confidence of an answer, 0 to 1, by the `reports` of the plan's last revision."""
    findings = {report.id: report.finding for report in reports if report.finding}
    claimed = {subtask_id: f.confidence for subtask_id, f in findings.items() if f.confidence is not None}
    left_open = [claim for finding in findings.values() for claim in finding.unsupported]
    repeated = [claim for claim in left_open if _has(answer.text, claim)]
    in_answer = len({*(item.text for item in answer.unsupported), *repeated})
    in_findings = len(left_open) - len(repeated)
    kinds = (
        (in_answer, _UNSUPPORTED_IN_ANSWER - _EACH_MORE * (in_answer - 1)),
        (in_findings, _UNSUPPORTED_IN_FINDING - _EACH_MORE * (in_findings - 1)),
        (any(finding.doubts for finding in findings.values()), _DOUBTED),
        (not all(item.resolution.strip() for item in contradictions), _UNSETTLED),
        (open_points, _OPEN_POINT),
        (any(report.stale for report in reports), _STALE),
        (reports and not answer.citations, _UNCITED),
    )
    faults = [bound for is_there, bound in kinds if is_there]
    # The weakest required finding counts, cited or not; of all findings that are cited the mean
    # does.
    doubts = [0.5 + own / 2 for subtask_id, own in claimed.items() if importance.get(subtask_id) == "required"]
    cited = {subtask_id for citation in answer.citations for subtask_id in citation.subtask_ids}
    if own := [confidence for subtask_id, confidence in claimed.items() if subtask_id in cited]:
        doubts.append(sum(own) / len(own))
    if answer.grounding == "knowledge" or any(each.grounding == "knowledge" for each in findings.values()):
        doubts.append(_KNOWLEDGE)
    bound = min([1.0, *faults, *doubts]) * _FURTHER_KIND ** max(0, len(faults) - 1)
    share = _share(reports, importance)
    return round(share and share * max(_LEAST, bound), 2)


def _has(text: str, claim: str) -> bool:
    """True if a text makes a claim, as whole words."""
    return re.search(rf"(?<!\w){re.escape(claim)}(?!\w)", text) is not None


def _share(reports: Sequence[SubtaskReport], importance: Mapping[str, Importance]) -> float:
    """Returns the share of the plan that is in the answer, by weight.

    An answer without a plan has all of it.
    """
    weights = {report.id: _WEIGHTS.get(importance.get(report.id), 0.0) for report in reports}
    planned = sum(weights.values())
    return sum(weights[report.id] * _completed(report) for report in reports) / planned if planned else 1.0


def _completed(report: SubtaskReport) -> float:
    if report.state != "completed":
        return 0.0
    is_partial = report.finding is not None and report.finding.outcome == "partial"
    return _PARTIAL if is_partial or (report.counts and report.counts.completed < report.counts.total) else 1.0


def unsupported_in(answer: Answer, reports: Sequence[SubtaskReport]) -> list[Unsupported]:
    """Returns the claims of answer and findings that nothing supports, the answer's first."""
    found = [Unsupported(text=text, where=r.id) for r in reports if r.finding for text in r.finding.unsupported]
    return [*answer.unsupported, *found][: limits.UNSUPPORTED_LISTED]


def doubts_in(reports: Sequence[SubtaskReport]) -> list[Doubt]:
    """Returns the doubts about the queries behind the findings."""
    found = [Doubt(text=text, where=r.id) for r in reports if r.finding for text in r.finding.doubts]
    return found[: limits.UNSUPPORTED_SHOWN]
