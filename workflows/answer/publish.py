"""Storing the result of a run with its trace, however many subtasks it has."""

import asyncio
from collections.abc import Coroutine
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
    from workflows.background import stop_all
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.run_context import RunContext

T = TypeVar("T")

PUBLISH_BYTES = 200 * 1024  # a result or trace on its way into the store, as an activity's input


async def stored_result(
    state: RunState, context: RunContext, result: RunResult, patience: timedelta | None
) -> Published:
    """Stores the result: page by page what does not fit into one activity input, then the whole of it."""
    *earlier, last = pages(result.subtasks, limits.PAYLOAD_AIM_BYTES)
    head = fit(result.model_copy(update={"subtasks": [], "artifacts": state.tables}), limits.PAYLOAD_AIM_BYTES)
    refs: list[str] = []
    for page in earlier:
        kept = PublishInput(run=context.run, result=RunResult(subtasks=page), is_page=True)
        refs.append((await _publish(kept, [], patience)).result_ref)
    publication = PublishInput(
        run=context.run,
        result=head.model_copy(update={"subtasks": last}),
        pages=refs,
        plan_ref=context.plan_ref or None,
        answer_json_ref=state.answer.json_ref,
        team=context.team.name if state.phase == "done" and context.nested is None else None,
        planned=state.planned,
        estimate=state.estimate.total if state.estimate else None,
        facts=RunFacts(
            goal_ref=context.setup.goal_ref,
            team=context.team.name,
            phase=state.phase,
            error=state.error,
            notice=state.model_notice,
            owner=state.owner,
            began_at=workflow.info().workflow_start_time.isoformat(),
            plan_ref=context.plan_ref,
        ),
    )
    return await _publish(publication, state.trace.recent(PUBLISH_BYTES), patience)


async def _publish(result: PublishInput, trace: list[TraceEvent], patience: timedelta | None) -> Published:
    activity, summary = RunActivities.publish_result, "store result and trace"
    return await activity_calls.with_store(activity, limits.PUBLISH_TIMEOUT, summary, result, trace, patience=patience)


async def in_time(storing: Coroutine[Any, Any, T], hurry: asyncio.Event) -> T:
    """Returns the result of `storing`.

    Raises CallFailed if that takes long after the `hurry`: the run was cancelled.
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
