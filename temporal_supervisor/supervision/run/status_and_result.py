"""The status and the result of a run, made from its state on request."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.result import Doubt, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import Status, Wait
from temporal_supervisor.supervision.results.answer import (
    ANSWER,
    ANSWER_JSON,
    Answer,
    grounding_of,
    with_gaps,
)
from temporal_supervisor.supervision.results.confidence import (
    ceiling,
    doubts_about,
    unsupported_in,
)
from temporal_supervisor.supervision.results.payload_fit import PAYLOAD_ROOM_BYTES, cut_to
from temporal_supervisor.supervision.results.timing import timing
from temporal_supervisor.supervision.reuse.matching import saved_usage
from temporal_supervisor.supervision.run.run_state import RunState


def status_of(state: RunState, cursor: int = 0, since: str = "", execution: str = "") -> Status:
    """Returns the status, with a page of subtasks and of waits that begins at `cursor`.

    If `since` is the version of an earlier status, only subtasks that changed after it are listed.
    A version from another execution, before a reset, or of another plan is ignored: then all are
    listed.
    """
    known = _change_of(state, since, execution)
    reports = state.board.reports()
    shown = state.board.changed_since(known)
    waiting = state.waits.current
    cursor = max(0, cursor)
    following = cursor + limits.STATUS_PAGE
    is_last = following >= max(len(shown), len(waiting))
    shown_waits = [_until_deadline(state, wait) for wait in waiting[cursor:following]]
    rounds = state.request.max_reviews

    status = Status(
        goal=one_line(state.request.goal, 400),
        team=state.request.team_name,
        phase=state.phase,
        flags=state.flags,
        revision=state.revision,
        counts=state.board.counts(),
        subtasks=shown[cursor:following],
        next_cursor=None if is_last else following,
        version=f"{_plan_of(state, execution)}.{state.board.version}",
        since=since if known else "",
        usage=state.usage + state.nested.spent,
        spend=state.spending.rows(),
        limits=state.time_and_budget.card(state.request),
        waiting=shown_waits,
        breakers=[*state.waits.cards()[: limits.STATUS_PAGE]],
        review=f"up to {rounds} rounds" if rounds else "off",
        deadline_at=state.time_and_budget.deadline_at.isoformat(),
        updates=state.update_replies.taken,
        warnings=state.warnings,
        reuse_from=state.request.reuse_from,
        saved=saved_usage(reports),
        model_notice=state.models.notice,
        error=state.error,
    )
    return cut_to(status, PAYLOAD_ROOM_BYTES)


def _plan_of(state: RunState, execution: str) -> str:
    """Returns the part of a version that identifies the execution and the plan."""
    return f"{execution}.{state.revision}"


def _change_of(state: RunState, version: str, execution: str) -> int:
    """Returns the number of the board's change in a version; 0 if its plan is another one."""
    plan, _, change = version.rpartition(".")
    is_known = plan == _plan_of(state, execution) and change.isdecimal()
    return int(change) if is_known else 0


def _until_deadline(state: RunState, wait: Wait) -> Wait:
    """Returns a wait that ends at the run's deadline, if that is earlier and the clock runs."""
    if state.time_and_budget.held or wait.expires_at is None:
        return wait
    deadline = state.time_and_budget.work_until
    if datetime.fromisoformat(wait.expires_at) <= deadline:
        return wait
    return wait.model_copy(update={"expires_at": deadline.isoformat()})


def result_of(state: RunState) -> RunResult:
    """Returns the result so far, which is final once the phase is `done`."""
    now = state.finished_at or state.now()
    reports = [_timed(state, report, now) for report in state.board.reports()]
    gaps = state.answer.gaps
    answer = _shown_answer(state)
    doubts = _doubts(state)
    wall = now - state.started_at
    held = state.time_and_budget.held_time(state.started_at, now)
    own_seconds = state.time_and_budget.own_seconds

    return RunResult(
        status=state.outcome,
        answer=with_gaps(answer.text, gaps) if state.answer.current.text else answer.text,
        answer_json=answer.as_json,
        answer_ref=answer.ref,
        answer_model=answer.model,
        result_ref=state.published.result_ref,
        trace_ref=state.published.trace_ref,
        confidence=_confidence(state, doubts),
        grounding=grounding_of(answer, state.board.current()),
        gaps=gaps,
        contradictions=state.answer.contradictions,
        citations=answer.citations,
        unsupported=unsupported_in(answer, state.board.current()),
        doubts=doubts,
        subtasks=reports,
        artifacts=[*state.answer.tables, *_artifacts_of(reports)],
        usage=state.usage,
        spend=state.spending.rows(),
        timing=timing(reports, wall.total_seconds(), own_seconds, now, held.total_seconds()),
        plan_revisions=state.revision,
        warnings=state.warnings,
        reuse_from=state.request.reuse_from,
        saved=saved_usage(reports),
        truncated=answer.json_ref is not None,
    )


def _artifacts_of(reports: Iterable[SubtaskReport]) -> Iterator[ArtifactRef]:
    for report in reports:
        if report.finding:
            yield from report.finding.artifacts


def _shown_answer(state: RunState) -> Answer:
    """Returns the answer or, until there is one, its draft."""
    is_open = state.outcome == "running"
    answer = state.answer
    return answer.draft if is_open and not answer.current.text else answer.current


def _timed(state: RunState, report: SubtaskReport, now: datetime) -> SubtaskReport:
    if report.started_at is None:
        return report
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else now
    begun = datetime.fromisoformat(report.started_at)
    held = state.time_and_budget.held_time(begun, end).total_seconds()
    return report.model_copy(update={"held_seconds": round(held, 3)}) if held else report


def _doubts(state: RunState) -> list[Doubt]:
    """Returns the doubts about the answer, and about the queries behind it.

    An extract is not looked at: it tells of itself that it is no answer.
    """
    is_answer = not state.models.extract and state.answer.missing_because is None
    answer = state.answer.current if is_answer else Answer()
    return doubts_about(state.request.goal, answer, state.board.current())


def _confidence(state: RunState, doubts: Sequence[Doubt]) -> float | None:
    """Returns the model's confidence, capped at the computed upper bound; else the bound.

    None without an answer, and for an extract.
    """
    if state.answer.missing_because is not None:
        return 0.0
    answer = state.answer.current
    if state.models.extract or not answer.text or state.phase == "failed":
        return None

    of_the_answer = (ANSWER, ANSWER_JSON)
    points = [each for each in state.open_points.all_points if each.subtask_id not in of_the_answer]
    by_id = state.plan.importance
    contradictions = state.answer.contradictions
    bound = ceiling(answer, state.board.current(), by_id, contradictions, points, doubts)
    return bound if answer.confidence is None else min(answer.confidence, bound)
