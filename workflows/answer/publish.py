"""The result of a run that has ended: stored whole, and returned as far as a payload takes it."""

from dataclasses import replace

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import Published, PublishInput
    from supervision import limits
    from supervision.contract.result import RunResult
    from supervision.results.payload_fit import fit, pages
    from supervision.run.run_state import RunState
    from workflows.calls import run_calls
    from workflows.failures import CallFailed
    from workflows.nested.nested_result import nested_result
    from workflows.nested.parent_link import ParentLink
    from workflows.run_context import RunContext

_PUBLISH_BYTES = 200 * 1024  # a result or trace on its way into the store, as an activity's input


async def published(state: RunState, context: RunContext | None, parent: ParentLink | None) -> RunResult:
    """Returns the result as it fits into a payload, after all of it was stored; a nested one is for its parent.

    If it cannot be stored it is returned all the same, with as much as a payload takes. Without a `context` the run
    ended before it had a store.
    """
    result = state.result()
    if context is not None:
        try:
            stored = await _stored(state, context, result)
        except CallFailed as failed:
            state.warn(f"the result could not be stored: {failed}")
            result = state.result()
            return fit(result, _PUBLISH_BYTES) if parent is None else nested_result(state, result)
        # A call that was cancelled may have been answered while this waited: what it cost is booked, and told.
        result.usage, result.spend, result.warnings = state.usage, state.spending.rows(), state.all_warnings
        result.result_ref = state.result_ref = stored.result_ref
        result.trace_ref = state.trace_ref = stored.trace_ref
        result.answer_ref = stored.answer_ref or result.answer_ref
        state.answer = replace(state.answer, ref=result.answer_ref)
    return fit(result) if parent is None else nested_result(state, result)


async def _stored(state: RunState, context: RunContext, result: RunResult) -> Published:
    """Stores the result: page by page what does not fit into one activity input, then the whole of it."""
    *earlier, last = pages(result.subtasks, limits.PAYLOAD_AIM_BYTES)
    head = fit(result.model_copy(update={"subtasks": [], "artifacts": []}), limits.PAYLOAD_AIM_BYTES)
    refs: list[str] = []
    for page in earlier:
        kept = PublishInput(run=context.run, result=RunResult(subtasks=page), is_page=True)
        refs.append((await run_calls.publish_result(kept, [])).result_ref)
    publication = PublishInput(
        run=context.run,
        result=head.model_copy(update={"subtasks": last}),
        pages=refs,
        plan_ref=context.plan_ref or None,
        answer_ref=state.answer.ref,
    )
    return await run_calls.publish_result(publication, state.trace.recent(_PUBLISH_BYTES))
