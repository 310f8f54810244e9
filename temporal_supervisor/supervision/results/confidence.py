"""The upper bound of a run's confidence, the unsupported claims of its answer, and doubts.

The bound is computed from the basis of the answer. The confidence of a finding is its author's
estimate, from 0 to 1 (see `share_of`), and one of the factors of the bound.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import has_whole
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Importance
from temporal_supervisor.supervision.contract.result import (
    Contradiction,
    Doubt,
    Gap,
    SubtaskReport,
    Unsupported,
)
from temporal_supervisor.supervision.grounding.parts_left_out import parts_left_out
from temporal_supervisor.supervision.results.answer import ANSWER, Answer

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
    doubts: Sequence[Doubt],
) -> float:
    """Returns the upper bound of an answer's confidence, from 0 to 1.

    The `reports` are of the plan's last revision.
    """
    share = _share(reports, importance)
    if share == 0:
        return 0.0
    findings = {report.id: report.finding for report in reports if report.finding}
    faults = _faults(answer, reports, contradictions, open_points, doubts)
    estimates = _estimates(answer, findings, importance)
    worst = min([1.0, *faults, *estimates])
    further_kinds = max(0, len(faults) - 1)
    bound = worst * _FURTHER_KIND**further_kinds
    return round(share * max(_LEAST, bound), 2)


def _faults(
    answer: Answer,
    reports: Sequence[SubtaskReport],
    contradictions: Sequence[Contradiction],
    open_points: Sequence[Gap],
    doubts: Sequence[Doubt],
) -> list[float]:
    """Returns a bound for each kind of fault in the answer."""
    findings = [report.finding for report in reports if report.finding]
    left_open = [*chain.from_iterable(finding.unsupported for finding in findings)]
    repeated = [claim for claim in left_open if has_whole(answer.text, claim)]
    own = [item.text for item in answer.unsupported]
    in_answer = len({*own, *repeated})
    in_findings = len(left_open) - len(repeated)
    kinds = (
        (in_answer, _UNSUPPORTED_IN_ANSWER - _EACH_MORE * (in_answer - 1)),
        (in_findings, _UNSUPPORTED_IN_FINDING - _EACH_MORE * (in_findings - 1)),
        (doubts, _DOUBTED),
        (not all(item.resolution.strip() for item in contradictions), _UNSETTLED),
        (open_points, _OPEN_POINT),
        (any(report.stale for report in reports), _STALE),
        (reports and not answer.citations, _UNCITED),
    )
    return [bound for is_there, bound in kinds if is_there]


def _estimates(
    answer: Answer,
    findings: Mapping[str, Finding],
    importance: Mapping[str, Importance],
) -> list[float]:
    """Returns the bounds by the findings' own confidence, and the bound of mere knowledge.

    The lowest required finding counts, cited or not, and so does the mean of the cited ones.
    """
    cited = {*chain.from_iterable(citation.subtask_ids for citation in answer.citations)}
    estimates: list[float] = []
    own_of_cited: list[float] = []
    for subtask_id, finding in findings.items():
        if finding.confidence is None:
            continue
        if importance.get(subtask_id) == "required":
            estimates.append(0.5 + finding.confidence / 2)
        if subtask_id in cited:
            own_of_cited.append(finding.confidence)
    if own_of_cited:
        estimates.append(sum(own_of_cited) / len(own_of_cited))

    grounds = [answer.grounding, *(finding.grounding for finding in findings.values())]
    if "knowledge" in grounds:
        estimates.append(_KNOWLEDGE)
    return estimates


def _share(reports: Sequence[SubtaskReport], importance: Mapping[str, Importance]) -> float:
    """Returns the weighted share of the plan that is in the answer; 1 without a plan."""
    weights = {report.id: _WEIGHTS.get(importance.get(report.id), 0.0) for report in reports}
    planned = sum(weights.values())
    if not planned:
        return 1.0
    return sum(weights[report.id] * _completed(report) for report in reports) / planned


def _completed(report: SubtaskReport) -> float:
    """Returns the completed share of a subtask, from 0 to 1."""
    if report.state != "completed":
        return 0.0
    if report.finding is not None and report.finding.outcome == "partial":
        return _PARTIAL
    if report.counts is not None and report.counts.completed < report.counts.total:
        return _PARTIAL
    return 1.0


def unsupported_in(answer: Answer, reports: Sequence[SubtaskReport]) -> list[Unsupported]:
    """Returns the unsupported claims of answer and findings, the answer's first."""
    found = list(answer.unsupported)
    for report in reports:
        if report.finding is not None:
            for text in report.finding.unsupported:
                found.append(Unsupported(text=text, where=report.id))
    return found[: limits.UNSUPPORTED_LISTED]


def doubts_about(goal: str, answer: Answer, reports: Sequence[SubtaskReport]) -> list[Doubt]:
    """Returns the parts of the goal that an answer leaves out, and doubts about its queries."""
    found: list[Doubt] = []
    if answer.as_json is None and answer.json_ref is None:  # JSON may have what the text lacks
        found += [Doubt(text=text, where=ANSWER) for text in parts_left_out(goal, answer.text)]
    for report in reports:
        if report.finding is not None:
            found += [Doubt(text=text, where=report.id) for text in report.finding.doubts]
    return found[: limits.UNSUPPORTED_SHOWN]
