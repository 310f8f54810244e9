"""Storing the result and the trace of a run, in pages if it has many subtasks."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import Published, PublishInput, RunFacts
    from activities.run.run_activities import RunActivities
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.contract.result import Problem, RunResult
    from temporal_supervisor.supervision.contract.status import TraceEvent
    from temporal_supervisor.supervision.results.payload_fit import fit, pages
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.status_and_result import result_of

    from workflows.background import let_ready_tasks_finish, stop_all
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms

T = TypeVar("T")

PUBLISH_BYTES = 200 * 1024  # a result or trace on its way into the store, as an activity's input


@dataclass(frozen=True)
class StoredResult:
    """The result of a run at its end, and the number of bytes that it may take in a payload.

    `record_ref` is the reference of its record in the store, empty if it could not be stored.
    """

    result: RunResult
    record_ref: str
    room: int


class Publication:
    """Stores the result of a run, together with the plan in force at its end."""

    def __init__(self, terms: RunTerms, state: RunState, plan: PlanInForce) -> None:
        self._terms = terms
        self._state = state
        self._plan = plan

    async def stored_result(self, patience: timedelta | None, hurry: asyncio.Event) -> StoredResult:
        """Returns the result once it is stored, or with a warning if it cannot be stored.

        With `patience` the store may be unavailable for that long, and only briefly after the
        `hurry`.
        """
        state = self._state
        result = result_of(state)
        record_ref, room = "", limits.PAYLOAD_AIM_BYTES
        try:
            published = await in_time(self._store(result, patience), hurry)
        except CallFailed as failed:
            state.warn(f"the result could not be stored: {failed}")
            room = PUBLISH_BYTES
        else:
            record_ref, result = published.record_ref, _with_refs(result, published)
            state.published.set_refs(published.result_ref, result.trace_ref, result.answer_ref)
        # A call that was cancelled may have been answered while this waited, or just now: what it
        # cost is booked.
        await let_ready_tasks_finish()
        costs: dict[str, object] = {
            "usage": state.usage,
            "spend": state.spending.rows(),
            "warnings": [*state.warnings],
        }
        return StoredResult(result.model_copy(update=costs), record_ref, room)

    async def _store(self, result: RunResult, patience: timedelta | None) -> Published:
        """Stores the result, page by page if it does not fit into one activity input.

        With `patience` the store may be unavailable for that long at most. Raises CallFailed.
        """
        room = limits.PAYLOAD_AIM_BYTES
        *earlier, last = pages(result.subtasks, room)
        without_subtasks = {"subtasks": [], "artifacts": self._state.answer.tables}
        head = fit(result.model_copy(update=without_subtasks), room)
        refs: list[str] = []
        for subtasks in earlier:
            page = PublishInput(
                run=self._terms.run, result=RunResult(subtasks=subtasks), is_page=True
            )
            published = await _publish(page, [], patience)
            refs.append(published.result_ref)
        fitted = head.model_copy(update={"subtasks": last})
        trace = self._state.trace.recent(PUBLISH_BYTES)
        return await _publish(self._input(fitted, refs), trace, patience)

    def _input(self, result: RunResult, page_refs: list[str]) -> PublishInput:
        terms, state, plan = self._terms, self._state, self._plan
        estimate = state.proposals.estimate
        is_done = state.phase == "done" and terms.nested is None
        return PublishInput(
            run=terms.run,
            result=result,
            pages=page_refs,
            plan_ref=plan.ref or None,
            answer_json_ref=state.answer.current.json_ref,
            team=plan.team.name if is_done else None,
            planned=state.planned,
            estimate=estimate.total if estimate else None,
            facts=RunFacts(
                goal_ref=terms.setup.goal_ref,
                team=plan.team.name,
                phase=state.phase,
                error=state.error,
                notice=state.models.notice,
                owner=state.owner,
                began_at=workflow.info().workflow_start_time.isoformat(),
                plan_ref=plan.ref,
            ),
        )


def _with_refs(result: RunResult, published: Published) -> RunResult:
    """Returns a result that names the objects it is stored in."""
    refs = {
        "result_ref": published.result_ref,
        "trace_ref": published.trace_ref,
        "answer_ref": published.answer_ref or result.answer_ref,
    }
    return result.model_copy(update=refs)


async def _publish(
    result: PublishInput, trace: list[TraceEvent], patience: timedelta | None
) -> Published:
    publish, time = RunActivities.publish_result, limits.PUBLISH_TIMEOUT
    summary = "store result and trace"
    return await activity_calls.store_call(publish, time, summary, result, trace, patience=patience)


async def in_time(storing: Coroutine[Any, Any, T], hurry: asyncio.Event) -> T:
    """Returns the result of `storing`.

    Raises CallFailed if that takes longer than CLOSING_PATIENCE after the `hurry`, which is set
    when a closing run is cancelled.
    """
    task = asyncio.create_task(storing)
    try:
        await workflow.wait_condition(lambda: task.done() or hurry.is_set())
        if not task.done():
            await workflow.wait([task], timeout=limits.CLOSING_PATIENCE.total_seconds())
    except asyncio.CancelledError:
        await stop_all([task])
        raise
    if not task.done():
        await stop_all([task])
        why = "the run was cancelled while its store was away"
        raise CallFailed(Problem(type=ErrorKind.ARTIFACT_UNAVAILABLE, message=why))
    return task.result()
