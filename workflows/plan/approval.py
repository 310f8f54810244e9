"""A person's approval of a plan: asked before anything of it begins, and again where a revision goes beyond it."""

from collections.abc import Awaitable, Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PlanReply
    from supervision.base import limits
    from supervision.base.errors import ErrorKind, SupervisionError
    from supervision.base.text import cut
    from supervision.contract.plan import Estimate, Plan
    from supervision.contract.status import Wait
    from supervision.run.decisions import Decision
    from workflows.run_context import RunContext

_CHANGES = 5  # times that the planner is asked for another plan by a comment: after that edit it, or reject it

Again = Callable[[PlanReply, Decision, int], Awaitable[PlanReply]]
"""Returns the plan that a decision asks for, as the revision of that number."""


async def approved(context: RunContext, reply: PlanReply, again: Again) -> PlanReply:
    """Returns the plan that may run: that in `reply`, or what a person made of it. Raises SupervisionError."""
    state, changes, problem = context.state, 0, ""
    number = reply.plan.revision if reply.plan else 0
    while _needs_approval(context, reply):
        choices = ["approve", "edit", "reject", *(["change"] if reply.head and changes < _CHANGES else [])]
        decision = await _decision(context, reply, number, choices, problem)
        if decision.choice == "approve":
            break
        if decision.choice == "reject":
            raise SupervisionError(ErrorKind.PLAN_REJECTED, _because("the plan was rejected", decision.text))
        number, changes = number + 1, changes + (decision.choice == "change")
        made = await again(reply, decision, number)
        if made.plan is None:  # an edit that cannot run: the plan before it is shown again
            problem = _because("the edited plan cannot run", "; ".join(made.problems))
            continue
        reply, problem, state.estimate = made, "", made.estimate
        if decision.choice == "edit":
            break
    state.approved_roles |= {subtask.role for subtask in reply.plan.subtasks} if reply.plan else set()
    return reply


def _needs_approval(context: RunContext, reply: PlanReply) -> bool:
    """True if a person decides: about a first plan, and about a revision that brings in another role."""
    state, plan = context.state, reply.plan
    if not state.request.approve_plan or context.nested is not None or plan is None:
        return False
    return not state.approved_roles.issuperset(subtask.role for subtask in plan.subtasks)


async def _decision(context: RunContext, reply: PlanReply, number: int, choices: list[str], problem: str) -> Decision:
    """Returns what a person decides, or what the request says for the end of the time."""
    state, plan = context.state, reply.plan
    assert plan is not None
    is_first = not state.plan.subtasks
    wait = Wait(
        id=f"plan.{number}",
        kind="plan",
        workflow_id=workflow.info().workflow_id,
        prompt_preview=problem or _preview(plan, reply.estimate),
        choices=choices,
        content_ref=reply.plan_ref or "",
        since=workflow.now().isoformat(),
    )
    state.proposed, state.estimate = plan, reply.estimate
    if is_first:
        context.enter("approval")
        state.time_and_budget.hold("approval")
    try:
        decision = await context.decision(wait, state.request.approval_timeout, plan.model_dump_json())
    finally:
        state.proposed = None
        state.time_and_budget.hold("approval", False)  # there are no nested runs yet to hear of it
    if is_first:
        context.enter("planning")
    if decision is None and state.request.on_approval_timeout == "reject":
        raise SupervisionError(ErrorKind.PLAN_REJECTED, "no decision on the plan came in time")
    return decision or Decision(id=wait.id, choice="approve")


def _preview(plan: Plan, estimate: Estimate | None) -> str:
    """Returns what is asked in one sentence: `4 subtasks, 8-14 calls, $0.17-0.32: ...`."""
    facts = [f"{len(plan.subtasks)} subtask{'' if len(plan.subtasks) == 1 else 's'}"]
    facts += [estimate.total.line] if estimate else []
    described = "; ".join(subtask.description for subtask in plan.subtasks)
    return cut(f"{', '.join(facts)}: {described}", limits.PARAGRAPH_BYTES)


def _because(what: str, why: str) -> str:
    return cut(f"{what}: {why}" if why else what, limits.PARAGRAPH_BYTES)
