"""Getting a plan: the first, the next step, a revision. A plan that cannot run goes back at most twice."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.planning_contracts import PlanInput, PlanReply, Strategy
    from supervision import limits
    from supervision.budget.ledger import plan_estimate
    from supervision.errors import ErrorKind, SupervisionError
    from supervision.results.success_rule import importance, reachable
    from supervision.text import cut
    from workflows.background import BackgroundTask
    from workflows.calls import activity_calls
    from workflows.calls.finding_refs import notes
    from workflows.run_context import RunContext


class Replanning(BackgroundTask):
    """Makes at most `replans` revisions of the plan, each when only new subtasks could still meet the rule."""

    def __init__(self, context: RunContext, replans: int) -> None:
        super().__init__()
        self._context = context
        self._left = replans

    def _is_due(self) -> bool:
        state = self._context.state
        if not self._left or not state.time_and_budget.time_left or state.time_and_budget.out_of_budget:
            return False
        rule, room = state.request.success, len(state.plan.subtasks) < state.request.max_subtasks
        return room and rule != "any" and not reachable(rule, state.board.current(), importance(state.plan))

    async def _work(self) -> None:
        self._left -= 1
        try:
            # Subtasks end while this waits: `adopt` takes the board as it stands then.
            if (await make_plan(self._context, "plan")).finished:
                self._left = 0
        except SupervisionError as error:
            self._context.state.warn(f"no better plan: {error.message}")
            self._left = 0
        except asyncio.CancelledError:
            self._left = 0


async def make_plan(context: RunContext, strategy: Strategy) -> PlanReply:
    """Returns a plan that can run, adopted; raises SupervisionError if there is none after three tries."""
    state = context.state
    revision = state.plan.revision + 1 if state.plan.subtasks else 1
    tokens = plan_estimate(state.goal_bytes)
    head, problems, incapable = None, [""], False
    for attempt in range(1, limits.PLAN_TRIES + 1):
        state.trace.note("plan_requested", attempt=attempt, revision=revision)
        payload = _plan_input(context, strategy, revision, attempt, head, problems if head else [])
        with context.own_work():
            reply = await context.call_model("a plan", activity_calls.plan, payload, tokens)
        if reply.refusal:
            raise SupervisionError(ErrorKind.INVALID_PLAN, f"the planner refused the goal: {reply.refusal}")
        if reply.finished or (reply.plan and reply.plan_ref):
            _adopt(context, reply)
            return reply
        head, problems = reply.head, [cut(item, 400) for item in reply.problems[:20]]
        incapable = reply.incapable
        state.trace.note("plan_rejected", attempt=attempt, problems=list(problems))
    raise SupervisionError(
        _kind(problems, incapable), f"no plan that can run after {limits.PLAN_TRIES} tries: " + "; ".join(problems)
    )


def _plan_input(
    context: RunContext, strategy: Strategy, revision: int, attempt: int, head: str | None, problems: list[str]
) -> PlanInput:
    """Returns the input of one try, with the work as it stands now: a revision is made while subtasks run."""
    state, setup = context.state, context.setup
    return PlanInput(
        run=context.run,
        goal_ref=setup.goal_ref,
        team_ref=context.team_ref,
        model=setup.supervisor_model,
        attachments=setup.attachments,
        max_subtasks=state.request.max_subtasks,
        strategy=strategy,
        nesting_left=max(0, state.request.max_depth - context.depth),
        in_flight=state.board.in_flight(),
        done=notes(state.board) if revision > 1 else [],
        previous_ref=context.plan_ref or None,
        revision=revision,
        attempt=attempt,
        head=head,
        problems=problems,
    )


def _adopt(context: RunContext, reply: PlanReply) -> None:
    state = context.state
    if reply.plan is None or reply.plan_ref is None:
        state.trace.note("nothing_to_add", revision=state.plan.revision)
        return
    context.plan_ref = reply.plan_ref
    if reply.team is not None and reply.team_ref is not None:
        context.team, context.team_ref = reply.team, reply.team_ref
    state.adopt(reply.plan)
    state.trace.note("plan_accepted", subtasks=len(reply.plan.subtasks), revision=reply.plan.revision)


def _kind(problems: list[str], incapable: bool) -> ErrorKind:
    if incapable:
        return ErrorKind.NO_CAPABLE_WORKER
    return ErrorKind.NO_SUBTASKS if any("no subtasks" in item for item in problems) else ErrorKind.INVALID_PLAN
