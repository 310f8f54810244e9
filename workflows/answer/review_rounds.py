"""Review: findings are held against the goal, what falls short is done again, conflicts go to a judge."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.judgement_contracts import ReviewInput, ReviewReply
    from supervision import limits
    from supervision.contract.result import Contradiction
    from supervision.errors import SupervisionError
    from workflows.answer.drafts import Drafts
    from workflows.calls import activity_calls
    from workflows.calls.finding_refs import as_refs, estimate
    from workflows.calls.judge_calls import settle
    from workflows.run_context import RunContext
    from workflows.subtasks.dispatch import Delegation


async def review(context: RunContext, delegation: Delegation, drafts: Drafts) -> None:
    """At most `max_reviews` rounds of review and mending; what is still open then becomes a gap."""
    state = context.state
    settled: set[frozenset[str]] = set()
    for round in range(1, state.request.max_reviews + 2):
        if not state.allowance.time_left:
            return
        began = workflow.now()
        reply = await _review(context, round)
        if reply is None:
            return
        await _settle_conflicts(context, reply.conflicts, settled)
        state.own_seconds += (workflow.now() - began).total_seconds()
        flagged = [v for v in reply.verdicts if state.board[v.subtask_id].state == "completed"]
        state.note("reviewed", round=round, flagged=[v.subtask_id for v in flagged])
        if not flagged:
            return
        if round > state.request.max_reviews:
            for verdict in flagged:
                state.open_point(verdict.subtask_id, f"a review still finds: {verdict.feedback}")
            return
        for verdict in flagged:
            state.open_point(verdict.subtask_id, f"there was no time to mend it: {verdict.feedback}")
            drafts.forget(verdict.subtask_id)
            delegation.reopen(verdict.subtask_id, verdict.feedback)
        await delegation.execute()


async def _review(context: RunContext, round: int) -> ReviewReply | None:
    """One round's verdicts; None, with a warning, when there could be none."""
    state = context.state
    findings = as_refs([report for report in state.board.usable() if report.state == "completed"], state.board)
    if not findings:
        return None
    input = ReviewInput(
        run=context.run,
        goal_ref=context.setup.goal_ref,
        plan_ref=context.plan_ref,
        model=context.setup.supervisor_model,
        round=round,
        findings=findings,
    )
    try:
        reply = await context.ask("the review", estimate(findings), lambda by: activity_calls.review(input, by))
    except SupervisionError as error:
        state.warn(f"the findings were not reviewed: {error.message}")
        return None
    if reply.problem:
        state.warn(f"a review could not be read: {reply.problem}")
        return None
    return reply


async def _settle_conflicts(context: RunContext, conflicts: list[Contradiction], settled: set[frozenset[str]]) -> None:
    """Has conflicts settled that are new; they stay in the result whatever the judge says."""
    state = context.state
    for conflict in conflicts:
        parties = frozenset(conflict.subtask_ids)
        if parties in settled:
            continue
        settled.add(parties)
        if len(settled) <= limits.JUDGED_CONFLICTS:
            conflict = conflict.model_copy(update={"resolution": await settle(context, conflict)})
        state.contradictions.append(conflict)
        state.note("conflict", subtasks=list(conflict.subtask_ids), resolved=bool(conflict.resolution))
