"""The result of a nested supervisor: its answer as a finding, or what it had when it had to end."""

from supervision.base import limits
from supervision.base.text import cut, size
from supervision.contract.finding import Finding
from supervision.contract.progress import NestedRun
from supervision.contract.result import RunResult
from supervision.grounding.citations import with_valid_marks
from supervision.results.answer import answer_record
from supervision.results.payload_fit import fit
from supervision.run.run_state import RunState
from workflows.children.child_contracts import NestedResult

_NESTED_RESULT_BYTES = 16 * 1024  # what a nested run returns goes into two histories: its whole result is in the store


def nested_run(state: RunState) -> NestedRun:
    """Returns where a nested supervisor stands, for the one above it."""
    return NestedRun(
        phase=state.phase,
        counts=state.board.counts() + state.nested.counts,
        usage=state.usage + state.nested.usage,
    )


def nested_result(state: RunState, whole: RunResult, record_ref: str) -> NestedResult:
    """Returns the result of a subtask for the supervisor above; the `whole` one and its record are in the store."""
    ended = {"status": whole.status, "result_ref": whole.result_ref, "trace_ref": whole.trace_ref}
    return NestedResult(
        finding=_finding(state, whole, record_ref),
        nested=nested_run(state).model_copy(update=ended),
        stopped=state.phase == "cancelled",
        turns=sum(report.turns for report in whole.subtasks),
        labels=state.labels,
        **dict(fit(whole, _NESTED_RESULT_BYTES)),
    )


def _finding(state: RunState, whole: RunResult, record_ref: str) -> Finding | None:
    """Returns the answer as a finding; what is missing from it are its limitations. A run that failed has none."""
    if not whole.answer_ref or state.phase == "failed":
        return None
    # Its marks name its own subtasks: above, [t1] is another one.
    answer = with_valid_marks(whole.answer, {subtask.id for subtask in state.plan.subtasks}, set())
    record = answer_record(whole).model_copy(update={"summary": cut(answer, limits.SUMMARY_BYTES)})
    if state.answer.is_findings:
        record.outcome = "partial"
    record.labels = state.labels
    return Finding(
        **record.model_dump(exclude={"checked", "evidence"}),
        text_ref=whole.answer_ref,
        text_bytes=size(whole.answer),
        artifacts=whole.artifacts[: limits.FINDING_SOURCES],
        record_ref=record_ref,
    )
