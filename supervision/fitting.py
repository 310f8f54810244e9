"""Making a result fit into a payload: texts give way to previews, the reference leads to the whole."""

from supervision import limits
from supervision.result import RunResult, SubtaskReport
from supervision.text import cut

_STEPS = (2048, 600, 200, 80, 24)
_KEPT_SOURCES = 20


def fit(result: RunResult, limit: int = limits.PAYLOAD_AIM_BYTES) -> RunResult:
    """`result` in at most about `limit` bytes of JSON; `truncated` says that something was shortened."""
    if len(result.model_dump_json()) <= limit:
        return result
    smaller = result
    for step in _STEPS:
        smaller = result.model_copy(
            update={
                "answer": cut(result.answer, max(limit // 2, 2048)),
                "answer_json": None if step < _STEPS[0] else result.answer_json,
                "subtasks": [_shorter(report, step) for report in result.subtasks],
                "citations": [c.model_copy(update={"claim": cut(c.claim, step)}) for c in result.citations[:step]],
                "gaps": [g.model_copy(update={"reason": cut(g.reason, step)}) for g in result.gaps],
                "artifacts": result.artifacts[: max(step // 4, 10)],
                "truncated": True,
            }
        )
        if len(smaller.model_dump_json()) <= limit:
            return smaller
    return smaller.model_copy(update={"answer": cut(result.answer, 2048), "citations": []})


def _shorter(report: SubtaskReport, step: int) -> SubtaskReport:
    finding = report.finding
    if finding is not None:
        finding = finding.model_copy(
            update={
                "summary": cut(finding.summary, step),
                "sources": finding.sources[: min(_KEPT_SOURCES, step // 20)],
                "artifacts": [],
                "limitations": [cut(text, step) for text in finding.limitations[:3]] if step >= 200 else [],
            }
        )
    error = report.error
    if error is not None:
        error = error.model_copy(update={"message": cut(error.message, step)})
    return report.model_copy(update={"description": cut(report.description, step), "finding": finding, "error": error})
