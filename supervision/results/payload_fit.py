"""Making results fit into a payload: texts give way to previews, the reference leads to the whole."""

from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic_core import to_json

from supervision import limits
from supervision.contract.result import Gap, RunResult, SubtaskReport
from supervision.contract.usage import Usage
from supervision.text import cut, size

_LEAST_ANSWER_BYTES = 2048
_KEPT_ITEMS = 20
_NAME_BYTES = 200


@dataclass(frozen=True)
class _Step:
    """What is kept when texts are shortened: at most so many bytes of each text, so many items of each list.

    `details` are the limitations of a finding and its claims without support; without any, what else is known of it is
    left out, too.
    """

    text: int
    address: int
    sources: int
    details: int
    artifacts: int
    json: bool = False


T = TypeVar("T")

_STEPS = (  # addresses stay longer than texts: a part of one leads nowhere
    _Step(text=2048, address=2048, sources=20, details=3, artifacts=512, json=True),
    _Step(text=600, address=600, sources=20, details=3, artifacts=150),
    _Step(text=200, address=200, sources=10, details=3, artifacts=50),
    _Step(text=80, address=200, sources=4, details=0, artifacts=20),
    _Step(text=24, address=200, sources=1, details=0, artifacts=10),
)


def fit(result: RunResult, limit: int = limits.PAYLOAD_AIM_BYTES) -> RunResult:
    """Returns `result` in at most `limit` bytes of JSON; `truncated` says that something was shortened.

    Ids and states of all subtasks and gaps stay below PAYLOAD_HARD_BYTES: 1,000 of them are above
    PAYLOAD_AIM_BYTES. Beyond that the first ones stay, and a warning counts the others.
    """
    if size(result.model_dump_json()) <= limit:
        return result
    answer_bytes = max(limit // 2, _LEAST_ANSWER_BYTES)
    shortest = _shorter_result(result, _STEPS[-1], answer_bytes)
    if size(shortest.model_dump_json()) <= limit:  # in large runs it is not: the other steps would be in vain, and long
        steps = (_shorter_result(result, step, answer_bytes) for step in _STEPS[:-1])
        return next((shorter for shorter in steps if size(shorter.model_dump_json()) <= limit), shortest)
    bare = shortest.model_copy(
        update={
            "answer": cut(result.answer, _LEAST_ANSWER_BYTES),
            "subtasks": [_bare(report, lean=len(result.subtasks) > limits.STATUS_PAGE) for report in result.subtasks],
            "gaps": [gap.model_copy(update={"reason": "", "description": ""}) for gap in result.gaps],
            "citations": [],
            "contradictions": [],
            "unsupported": [],
            "artifacts": [],
        }
    )
    return _counted(bare, max(limit, limits.PAYLOAD_HARD_BYTES * 7 // 8))


def _counted(result: RunResult, limit: int) -> RunResult:
    """Returns `result` with as many of its gaps and subtasks as fit; a warning counts the others."""
    if size(result.model_dump_json()) <= limit:
        return result
    shown = result.model_dump(mode="json")  # a subtask takes less in a long list than by itself
    gaps = _first(result.gaps, shown["gaps"], limit // 4)
    subtasks = _first(result.subtasks, shown["subtasks"], limit // 2)
    more = [(len(result.gaps) - len(gaps), "gaps"), (len(result.subtasks) - len(subtasks), "subtasks")]
    warnings = [f"{count} more {kind} stand only in the stored result" for count, kind in more if count]
    return result.model_copy(update={"gaps": gaps, "subtasks": subtasks, "warnings": [*warnings, *result.warnings]})


def fit_page(reports: list[SubtaskReport], limit: int = limits.PAYLOAD_HARD_BYTES) -> list[SubtaskReport]:
    """Returns `reports` with their texts shortened, if need be, until they take about `limit` bytes of JSON."""
    page = reports
    for step in _STEPS:
        if sum(size(report.model_dump_json()) for report in page) <= limit:
            break
        page = [_shorter(report, step) for report in page]
    return page


def _shorter_result(result: RunResult, step: _Step, answer_bytes: int) -> RunResult:
    """Lists keep at most as many items as a text keeps bytes: both are what a payload has room for."""
    return result.model_copy(
        update={
            "answer": cut(result.answer, answer_bytes),
            "answer_json": result.answer_json if step.json else None,
            "subtasks": [_shorter(report, step) for report in result.subtasks],
            "citations": [
                c.model_copy(update={"claim": cut(c.claim, step.text), "subtask_ids": c.subtask_ids[: step.text]})
                for c in result.citations[: step.text]
            ],
            "contradictions": [
                c.model_copy(
                    update={
                        "description": cut(c.description, step.text),
                        "resolution": cut(c.resolution, step.text),
                        "subtask_ids": c.subtask_ids[: step.text],
                    }
                )
                for c in result.contradictions[:_KEPT_ITEMS]
            ],
            "unsupported": [
                u.model_copy(update={"text": cut(u.text, step.text)}) for u in result.unsupported[: step.text]
            ],
            "gaps": [_shorter_gap(gap, step) for gap in result.gaps],
            "artifacts": [
                a.model_copy(update={"name": cut(a.name, _NAME_BYTES)}) for a in result.artifacts[: step.artifacts]
            ],
            "warnings": [cut(warning, step.text) for warning in result.warnings[:_KEPT_ITEMS]],
            "truncated": True,
        }
    )


def _shorter(report: SubtaskReport, step: _Step) -> SubtaskReport:
    finding = report.finding
    if finding is not None:
        finding = finding.model_copy(
            update={
                "summary": cut(finding.summary, step.text),
                "sources": [cut(source, step.address) for source in finding.sources[: step.sources]],
                "artifacts": [],
                "limitations": [cut(text, step.text) for text in finding.limitations[: step.details]],
                "unsupported": [cut(text, step.text) for text in finding.unsupported[: step.details]],
                "record_ref": finding.record_ref if step.details else "",
            }
        )
    error = report.error
    if error is not None:
        error = error.model_copy(update={"message": cut(error.message, step.text)})
    description = cut(report.description, step.text)
    return report.model_copy(update={"description": description, "finding": finding, "error": error})


def _shorter_gap(gap: Gap, step: _Step) -> Gap:
    """Returns a gap with its texts shortened; the reason stays longer than the description."""
    description = cut(gap.description, step.text) if step.details else ""
    return gap.model_copy(update={"reason": cut(gap.reason, step.text), "description": description})


def _first(items: list[T], shown: list[Any], limit: int) -> list[T]:
    """Returns the first items that take at most `limit` bytes together; `shown` is the JSON of each."""
    used = 0
    for place, json in enumerate(shown):
        used += len(to_json(json)) + 1
        if used > limit:
            return items[:place]
    return items


def _bare(report: SubtaskReport, lean: bool) -> SubtaskReport:
    """Returns a report without texts; a `lean` one has id and state only, its cost is unknown, not 0."""
    bare = SubtaskReport(id=report.id, state=report.state, usage=Usage(usd=None))
    if lean:
        return bare
    return bare.model_copy(
        update={"role": report.role, "attempts": report.attempts, "turns": report.turns, "usage": report.usage}
    )
