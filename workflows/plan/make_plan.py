"""Getting a plan: the first, the next step, a revision. A plan that cannot run goes back at most twice."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PlanInput, PlanReply
    from activities.questions.planning import PLAN
    from supervision.base import limits
    from supervision.base.errors import ErrorKind, SupervisionError
    from supervision.base.text import cut, quoted
    from supervision.budget.ledger import plan_estimate
    from supervision.contract.strategy import StrategyName
    from supervision.results.success_rule import importance, reachable
    from supervision.run.board import is_blocked
    from supervision.run.decisions import Decision
    from supervision.run.events import plan_accepted
    from workflows.calls.asking import ask
    from workflows.calls.finding_refs import notes
    from workflows.plan.approval import approved
    from workflows.plan.expanding import expand
    from workflows.run_context import BackgroundTask, RunContext


class Replanning(BackgroundTask):
    """Makes revisions of the plan: with the items of templates, and at most `replans` others.

    These are for work that failed, and for what a review finds missing.
    """

    def __init__(self, context: RunContext, replans: int) -> None:
        super().__init__()
        self._context = context
        self._left = replans
        self._considered: set[str] = set()

    async def add_missing(self, points: list[str]) -> bool:
        """Has subtasks planned for what a review misses. Returns True if there are any: they wait for the dispatch."""
        return self._possible and bool(points) and await self._replan(points)

    @property
    def _possible(self) -> bool:
        state = self._context.state
        room = len(state.plan.named) < state.request.max_subtasks
        budget = state.time_and_budget
        return bool(self._left and room and budget.time_left and not budget.out_of_budget)

    def _is_due(self) -> bool:
        expandable = bool(self._context.state.board.expandable())
        return expandable or (self._possible and not self._considered.issuperset(self._lost()))

    def _lost(self) -> list[str]:
        """Returns the subtasks that failed for good, if the answer or the success rule cannot do without them."""
        state = self._context.state
        rule, levels = state.request.success, importance(state.plan)
        in_reach = reachable(rule, state.board.current(), levels)
        return [
            report.id
            for report in state.board.current()
            if report.id in levels
            and (report.state == "failed" or is_blocked(report))
            and (levels[report.id] == "required" or not in_reach)
        ]

    async def _work(self) -> None:
        # One revision at a time: each is made of the plan as it stood when its work began.
        if not (templates := self._context.state.board.expandable()):
            await self._replan([])
            return
        with contextlib.suppress(asyncio.CancelledError):
            await expand(self._context, templates[0])

    async def _replan(self, missing: list[str]) -> bool:
        self._left -= 1
        self._considered.update(self._lost())
        try:
            # Subtasks end while this waits: `adopt` takes the board as it stands then.
            return not (await make_plan(self._context, "plan", missing)).finished
        except SupervisionError as error:
            self._context.state.warn(f"no better plan: {error.message}")
            self._left = 0
        except asyncio.CancelledError:
            self._left = 0
        return False


async def own_plan(context: RunContext) -> PlanReply:
    """Returns the plan of the run's caller, adopted; raises SupervisionError with what keeps it from running."""
    strategy = context.state.request.strategy
    payload = _plan_input(context, strategy, 1, 1, None, [])
    payload.own_plan_ref = context.setup.own_plan_ref
    reply = await ask(context, PLAN, payload, 0)
    if not reply.plan:
        raise SupervisionError(_kind(reply.problems, reply.incapable), _listed("the plan cannot run", reply.problems))
    return _adopt(context, await approved(context, reply, partial(_again, context, strategy, ())))


async def make_plan(context: RunContext, strategy: StrategyName, missing: Sequence[str] = ()) -> PlanReply:
    """Returns a plan that can run, adopted; raises SupervisionError if there is none after three tries.

    `missing` is what the plan so far lacks.
    """
    plan = context.state.plan
    reply = await _planned(context, strategy, missing, plan.revision + 1 if plan.subtasks else 1)
    return _adopt(context, await approved(context, reply, partial(_again, context, strategy, missing)))


async def _again(
    context: RunContext,
    strategy: StrategyName,
    missing: Sequence[str],
    reply: PlanReply,
    decision: Decision,
    revision: int,
) -> PlanReply:
    """Returns the plan that a person edited, or asks for another one by the person's comment."""
    if decision.plan is None:
        return await _planned(context, strategy, missing, revision, reply.head, decision.text)
    payload = _plan_input(context, strategy, revision, 1, None, [])
    payload.own_plan = decision.plan
    return await ask(context, PLAN, payload, 0)


async def _planned(
    context: RunContext,
    strategy: StrategyName,
    missing: Sequence[str],
    revision: int,
    head: str | None = None,
    comment: str = "",
) -> PlanReply:
    """Returns a plan that can run; with a `comment` on the one in the conversation at `head`, another one."""
    state = context.state
    tokens = plan_estimate(state.goal_bytes)
    problems, incapable = [""], False
    for attempt in range(1, limits.PLAN_TRIES + 1):
        state.trace.note("plan_requested", attempt=attempt, revision=revision)
        payload = _plan_input(context, strategy, revision, attempt, head, problems if head and not comment else [])
        payload.missing, payload.comment = list(missing), comment
        with context.own_work():
            reply = await ask(context, PLAN, payload, tokens)
        if reply.refusal:
            raise SupervisionError(ErrorKind.INVALID_PLAN, f"the planner refused the goal: {reply.refusal}")
        if reply.finished or (reply.plan and reply.plan_ref):
            return reply
        head, problems, comment = reply.head, [cut(item, 400) for item in reply.problems[:20]], ""
        incapable = reply.incapable
        state.trace.note("plan_rejected", attempt=attempt, problems=list(problems))
    raise SupervisionError(
        _kind(problems, incapable), _listed(f"no plan that can run after {limits.PLAN_TRIES} tries", problems)
    )


def _plan_input(
    context: RunContext, strategy: StrategyName, revision: int, attempt: int, head: str | None, problems: list[str]
) -> PlanInput:
    """Returns the input of one try, with the work as it stands now: a revision is made while subtasks run."""
    state, setup = context.state, context.setup
    return PlanInput(
        **context.call_fields,
        team_ref=context.team_ref,
        attachments=setup.attachments,
        max_subtasks=state.request.max_subtasks,
        max_turns=state.request.max_turns,
        estimates=state.request.approve_plan and context.nested is None,
        strategy=strategy,
        nesting_left=max(0, state.request.max_depth - context.depth),
        in_flight=state.board.in_flight(),
        done=notes(state.board) if revision > 1 else [],
        revision=revision,
        attempt=attempt,
        head=head,
        problems=problems,
    )


def _adopt(context: RunContext, reply: PlanReply) -> PlanReply:
    state = context.state
    if reply.plan is None or reply.plan_ref is None:
        state.trace.note("nothing_to_add", revision=state.plan.revision)
        return reply
    if reply.team is not None and reply.team_ref is not None:
        context.team, context.team_ref = reply.team, reply.team_ref
    context.adopt(reply.plan, reply.plan_ref)
    generalist = context.team.generalist
    for subtask_id, role in reply.unknown_roles.items():
        state.warn(f"the team has no role {quoted(role)}: {generalist} does {subtask_id}")
        state.trace.note("role_unknown", subtask_id, role=role, by=generalist)
    state.trace.note("plan_accepted", **plan_accepted(reply.plan, reply.strategy, reply.estimate))
    return reply


def _listed(text: str, problems: list[str]) -> str:
    return f"{text}: " + "; ".join(cut(item, limits.PARAGRAPH_BYTES) for item in problems[:20])


def _kind(problems: list[str], incapable: bool) -> ErrorKind:
    if incapable:
        return ErrorKind.NO_CAPABLE_WORKER
    return ErrorKind.NO_SUBTASKS if any("no subtasks" in item for item in problems) else ErrorKind.INVALID_PLAN
