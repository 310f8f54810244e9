"""What the supervisor has judged: which candidate is best, who is right, how a failed subtask should be described."""

from typing import Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.judgement_contracts import JudgeInput, JudgeReply, RefineInput
    from activities.contracts.run_contracts import DependencyRef
    from supervision import limits
    from supervision.budget.amount import call_estimate
    from supervision.contract.result import Contradiction, Problem
    from supervision.errors import SupervisionError
    from workflows.calls import activity_calls
    from workflows.calls.finding_refs import as_refs, estimate
    from workflows.run_context import RunContext
    from workflows.subtasks.children import Outcome


async def select(context: RunContext, subtask_id: str, outcomes: list[Outcome]) -> Outcome:
    """The best of several candidates by a judge's word, the first when it has none; all were paid."""
    good = [outcome for outcome in outcomes if outcome.problem is None and outcome.result.finding]
    if len(good) < 2:
        return (good or outcomes)[0]
    findings = [
        DependencyRef(subtask_id=subtask_id, role="", text_ref=found.text_ref, bytes=found.text_bytes)
        for one in good
        if (found := one.result.finding)
    ]
    description = context.state.board.subtask(subtask_id).description
    reply = await _judge(context, "select", description, findings)
    choice = reply.choice if reply and reply.choice is not None and reply.choice < len(good) else 0
    context.state.note("candidate_chosen", subtask_id, choice=choice + 1, of=len(good))
    return good[choice]


async def settle(context: RunContext, conflict: Contradiction) -> str:
    """A judge's word on findings that disagree; empty when there is none."""
    findings = as_refs([context.state.board[id] for id in conflict.subtask_ids])
    reply = await _judge(context, "conflict", conflict.description, findings)
    return reply.resolution if reply else ""


async def _judge(
    context: RunContext, question: Literal["select", "conflict"], description: str, findings: list[DependencyRef]
) -> JudgeReply | None:
    state = context.state
    state.judged += 1
    input = JudgeInput(
        run=context.run,
        goal_ref=context.setup.goal_ref,
        plan_ref=context.plan_ref,
        model=context.setup.supervisor_model,
        number=state.judged,
        question=question,
        description=description,
        findings=findings,
    )
    try:
        return await context.ask("the judge", estimate(findings), lambda by: activity_calls.judge(input, by))
    except SupervisionError as error:
        state.warn(f"there was no judgement: {error.message}")
        return None


async def refine(context: RunContext, subtask_id: str, role: str, known_ref: str | None, what: Problem) -> str | None:
    """The reference of a better description after a failed attempt; None when there is none."""
    state = context.state
    input = RefineInput(
        run=context.run,
        goal_ref=context.setup.goal_ref,
        plan_ref=context.plan_ref,
        subtask_id=subtask_id,
        description_ref=known_ref,
        role=role,
        model=context.setup.supervisor_model,
        attempt=state.board[subtask_id].attempts + 1,
        error=what,
    )
    tokens = call_estimate(limits.PLAN_PROMPT_BYTES)
    try:
        reply = await context.ask(f"refine {subtask_id}", tokens, lambda by: activity_calls.refine(input, by))
    except SupervisionError as error:
        state.warn(f"{subtask_id} could not be described better: {error.message}")
        return None
    return reply.description_ref
