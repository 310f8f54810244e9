"""Getting a plan: the first one, the next step, a revision after failures; each is mended at most twice."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.planning_contracts import PlanInput, PlanReply, Strategy
    from supervision import limits
    from supervision.budget.ledger import plan_estimate
    from supervision.errors import ErrorKind, SupervisionError
    from supervision.text import cut, size
    from workflows.calls import activity_calls
    from workflows.calls.finding_refs import notes
    from workflows.run_context import RunContext


async def make_plan(context: RunContext, strategy: Strategy) -> PlanReply:
    """A plan that can run, adopted; SupervisionError when there is none after three tries."""
    state = context.state
    began = workflow.now()
    revision = state.plan.revision + 1 if state.plan.subtasks else 1
    head, problems = None, [""]
    incapable = False
    for attempt in range(1, limits.PLAN_TRIES + 1):
        state.note("plan_requested", attempt=attempt, revision=revision)
        input = PlanInput(
            run=context.run,
            goal_ref=context.setup.goal_ref,
            team_ref=context.team_ref,
            model=context.setup.supervisor_model,
            attachments=context.setup.attachments,
            max_subtasks=state.request.max_subtasks,
            strategy=strategy,
            nesting_left=max(0, state.request.max_depth - context.depth),
            in_flight=state.board.in_flight(),
            done=notes(state.board) if revision > 1 else [],
            previous_ref=context.plan_ref or None,
            revision=revision,
            attempt=attempt,
            head=head,
            problems=problems if head else [],
        )
        tokens = plan_estimate(size(state.request.goal))
        reply = await context.ask("a plan", tokens, lambda by, input=input: activity_calls.plan(input, by))  # type: ignore[misc]
        state.own_seconds += (workflow.now() - began).total_seconds()
        began = workflow.now()
        if reply.refusal:
            raise SupervisionError(ErrorKind.INVALID_PLAN, f"the planner refused the goal: {reply.refusal}")
        if reply.finished or (reply.plan and reply.plan_ref):
            _adopt(context, reply)
            return reply
        head, problems = reply.head, [cut(item, 400) for item in reply.problems[:20]]
        incapable = reply.incapable
        state.note("plan_rejected", attempt=attempt, problems=list(problems))
    raise SupervisionError(
        _kind(problems, incapable), f"no plan that can run after {limits.PLAN_TRIES} tries: " + "; ".join(problems)
    )


def _adopt(context: RunContext, reply: PlanReply) -> None:
    state = context.state
    if reply.plan is None or reply.plan_ref is None:
        state.note("nothing_to_add", revision=state.plan.revision)
        return
    context.plan_ref = reply.plan_ref
    if reply.team is not None and reply.team_ref is not None:
        context.team, context.team_ref = reply.team, reply.team_ref
    state.adopt(reply.plan)
    state.note("plan_accepted", subtasks=len(reply.plan.subtasks), revision=reply.plan.revision)


def _kind(problems: list[str], incapable: bool) -> ErrorKind:
    if incapable:
        return ErrorKind.NO_CAPABLE_WORKER
    return ErrorKind.NO_SUBTASKS if any("no subtasks" in item for item in problems) else ErrorKind.INVALID_PLAN
