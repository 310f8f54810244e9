"""Plans: the first, the next step, a revision, the items of a template; approved by a person where one has to.

A plan that cannot run goes back to the model at most twice.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import ExpandInput, ExpandReply, PlanInput, PlanReply, WorkNote
    from activities.questions.items import Expansions
    from activities.questions.planning import PLAN
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.base.text import one_line, quoted
    from temporal_supervisor.supervision.budget.ledger import call_estimate
    from temporal_supervisor.supervision.contract.finding import Labels
    from temporal_supervisor.supervision.contract.plan import Estimate, Plan
    from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
    from temporal_supervisor.supervision.contract.strategy import StrategyName
    from temporal_supervisor.supervision.planning.expansion import room_for
    from temporal_supervisor.supervision.results.success_rule import reachable
    from temporal_supervisor.supervision.run.board import Board, is_blocked
    from temporal_supervisor.supervision.run.decisions import Decision
    from temporal_supervisor.supervision.run.events import planned
    from workflows.background import BackgroundTask
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.asking import ask
    from workflows.calls.saved_work import look_up, with_saved
    from workflows.run_context import RunContext

# How a person's comment may bring no other plan: it ends no run, the plan before it is shown again.
_NO_OTHER_PLAN = (
    ErrorKind.INVALID_REQUEST,
    ErrorKind.INVALID_PLAN,
    ErrorKind.NO_SUBTASKS,
    ErrorKind.NO_CAPABLE_WORKER,
    ErrorKind.BUDGET_EXHAUSTED,
)


_PROBLEMS_SHOWN = 20  # of a plan that cannot run


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
        budget = state.time_and_budget
        has_room = state.subtasks_left > 0 and not budget.ledger.exhausted
        return bool(self._left and has_room and budget.time_left)

    def _is_due(self) -> bool:
        expandable = bool(self._context.state.board.expandable())
        return expandable or (self._possible and not self._considered.issuperset(self._lost()))

    def _lost(self) -> list[str]:
        """Returns the subtasks that failed for good, if the answer or the success rule cannot do without them."""
        state = self._context.state
        rule, levels = state.request.success, state.plan.importance
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
            await _expand(self._context, templates[0])

    async def _replan(self, missing: list[str]) -> bool:
        self._left -= 1
        self._considered.update(self._lost())
        state = self._context.state
        before = len(state.plan.named)
        try:
            # Subtasks end while this waits: `adopt` takes the board as it stands then.
            finished = (await make_plan(self._context, "plan", missing)).finished
            state.trace.note("replan_brought", added=len(state.plan.named) - before)
            return not finished
        except SupervisionError as error:
            self._context.state.warn(f"no better plan: {error.message}")
            self._left = 0
        except asyncio.CancelledError:
            self._left = 0
        return False


async def make_plan(context: RunContext, strategy: StrategyName, missing: Sequence[str] = ()) -> PlanReply:
    """Returns a plan that can run, adopted: the caller's own one, else the planner's, who has three tries.

    `missing` is what the plan so far lacks. Raises SupervisionError if there is none.
    """
    state, plan, setup = context.state, context.state.plan, context.setup
    call = PlanInput(
        **context.call_fields,
        team_ref=context.team_ref,
        attachments=setup.attachments,
        max_subtasks=state.request.max_subtasks - state.nested.subtasks,
        max_turns=state.request.max_turns,
        max_tokens=state.request.max_tokens or limits.PLAN_MAX_TOKENS,
        estimates=state.request.approve_plan and context.nested is None,
        strategy=strategy,
        nesting_left=max(0, state.request.max_depth - context.depth),
        missing=list(missing),
        own_plan=None if plan.subtasks else state.request.plan,
        answer_schema_ref=setup.answer_schema_ref,
        earlier_ref=setup.earlier_ref,
        revision=max(plan.revision, state.plans_asked) + 1 if plan.subtasks else 1,
    )
    reply = await _planned(context, call)
    if call.own_plan and not reply.plan:
        raise _no_plan("the plan cannot run", reply.problems, reply.incapable)
    reply = await _approved(context, call, reply)
    return _adopt(context, reply)


async def next_step(context: RunContext) -> bool:
    """Asks the planner for the next subtask. Returns False if it needs none, or gives no usable answer."""
    state = context.state
    budget = state.time_and_budget
    if state.subtasks_left == 0 or not budget.time_left or budget.ledger.exhausted:
        return False
    try:
        return not (await make_plan(context, "step")).finished
    except SupervisionError as error:
        if not state.board.usable():
            raise
        state.warn(f"no next step: {error.message}")
        return False


async def _planned(context: RunContext, call: PlanInput) -> PlanReply:
    """Returns the reply of `_written`; findings of earlier runs for its plan are looked up, too."""
    return await with_saved(context, await _written(context, call))


async def _written(context: RunContext, call: PlanInput) -> PlanReply:
    """Returns a plan that can run, or the reply to one that is given. Raises SupervisionError after three tries."""
    state = context.state
    tokens = 0 if call.own_plan else call_estimate(state.goal_bytes + limits.PLAN_PROMPT_BYTES)
    for attempt in range(1, limits.PLAN_TRIES + 1):
        # The work as it stands now: a revision is made while subtasks run.
        done = _notes(state.board) if call.revision > 1 else []
        call = call.model_copy(update={"attempt": attempt, "done": done})
        if not call.own_plan:
            state.trace.note("plan_requested", attempt=attempt, revision=call.revision)
        try:
            with context.own_work():
                reply = await ask(context, PLAN, call, tokens)
        except SupervisionError as error:
            if error.kind is ErrorKind.INVALID_REQUEST and call.problems:  # no room to name them
                raise _no_plan(f"the plan cannot run, nor be mended ({error.message})", call.problems) from error
            raise
        if call.own_plan:
            return reply
        if reply.refusal:
            raise SupervisionError(ErrorKind.INVALID_PLAN, f"the planner refused the goal: {reply.refusal}")
        if reply.finished or (reply.plan and reply.plan_ref):
            return reply
        problems = reply.problems[:_PROBLEMS_SHOWN]
        state.trace.note("plan_rejected", attempt=attempt, problems=[*problems])
        call = call.model_copy(update={"problems": problems})
    raise _no_plan(f"no plan that can run after {limits.PLAN_TRIES} tries", call.problems, reply.incapable)


def _notes(board: Board) -> list[WorkNote]:
    """Returns one note a subtask for the planner, within one payload however many there are."""
    reports = [report for report in board.reports() if report.template is None]
    share = max(limits.NOTE_LEAST_BYTES, limits.NOTES_BYTES // max(1, len(reports)))
    room = min(share, limits.PARAGRAPH_BYTES)
    return [_note(report, room) for report in reports]


def _note(report: SubtaskReport, room: int) -> WorkNote:
    text = one_line(_note_text(report), room)
    return WorkNote(subtask_id=report.id, role=report.role, state=report.state, note=text)


def _note_text(report: SubtaskReport) -> str:
    if report.counts:
        return f"{report.counts.completed} of {report.counts.total} items completed"
    if report.error:
        tries = f" (after {report.attempts} attempts)" if report.attempts > 1 else ""
        return f"{report.error.type}: {report.error.message}{tries}"
    return report.finding.summary if report.finding else report.description


async def _approved(context: RunContext, call: PlanInput, reply: PlanReply) -> PlanReply:
    """Returns the plan that may run: that in the `reply` to a call, or what a person made of it."""
    state, problem = context.state, ""
    while _needs_approval(context, reply):
        # Each plan that is shown has a number of its own, and one that is shown again has another one.
        number = state.next_plan_number(reply.plan.revision if reply.plan else 0)
        choices = ["approve", "edit", "reject", *(["change"] if reply.head else [])]
        decision = await _decision(context, reply, number, choices, problem)
        if decision.choice == "approve":
            break
        if decision.choice == "reject":
            words = f"the plan was rejected: {decision.text}".removesuffix(": ")
            raise SupervisionError(ErrorKind.PLAN_REJECTED, words)
        changed: dict[str, object] = {"revision": number + 1, "own_plan": decision.plan}
        if decision.plan is None:
            changed |= {"head": reply.head, "comment": decision.text}
        try:
            made = await _planned(context, call.model_copy(update=changed))
        except SupervisionError as error:
            if error.kind not in _NO_OTHER_PLAN:
                raise
            problem = f"the planner has no other plan: {error.message}"
            continue
        if made.plan is None:  # an edit that cannot run, or no other plan: the one before it is shown again
            why = f"the edited plan cannot run: {'; '.join(made.problems)}"
            problem = "the planner has no other plan" if made.finished else why
            continue
        reply, problem = made, ""
        state.show_estimate(made.estimate)
        if decision.choice == "edit":
            break
    state.approve_roles_of(reply.plan)
    return reply


def _needs_approval(context: RunContext, reply: PlanReply) -> bool:
    """True if a person decides: about a first plan, and about a revision that brings in another role."""
    state, plan = context.state, reply.plan
    if not state.request.approve_plan or context.nested is not None or plan is None:
        return False
    return not state.approved_roles.issuperset(subtask.role for subtask in plan.subtasks)


async def _decision(context: RunContext, reply: PlanReply, number: int, choices: list[str], problem: str) -> Decision:
    """Returns a person's decision, or after the time for it the one that the request names."""
    state, plan = context.state, reply.plan
    assert plan is not None
    is_first = not state.plan.subtasks
    wait = context.new_wait(
        f"plan.{number}",
        "plan",
        prompt_preview=problem or _preview(plan, reply.estimate),
        choices=choices,
        content_ref=reply.plan_ref or "",
    )
    state.propose(plan, reply.estimate)
    if is_first:
        context.enter("approval")
        state.time_and_budget.hold("approval")
    try:
        decision = await context.decision(wait, state.request.approval_timeout, plan.model_dump_json())
    finally:
        state.end_proposal()
        state.time_and_budget.hold("approval", False)  # there are no nested runs yet to hear of it
    if is_first:
        context.enter("planning")
    if decision is None and state.request.on_approval_timeout == "reject":
        raise SupervisionError(ErrorKind.PLAN_REJECTED, "no decision on the plan came in time")
    return decision or Decision(id=wait.id, choice="approve", about=("plan",))


def _preview(plan: Plan, estimate: Estimate | None) -> str:
    """Returns the question in one sentence: `4 subtasks, 8-14 calls, $0.17-0.32: ...`."""
    count = len(plan.subtasks)
    facts = [f"{count} subtask{'' if count == 1 else 's'}"]
    if estimate is not None:
        facts.append(estimate.total.line)
    described = "; ".join(subtask.description for subtask in plan.subtasks)
    return f"{', '.join(facts)}: {described}"


def _adopt(context: RunContext, reply: PlanReply) -> PlanReply:
    state = context.state
    if reply.plan is None or reply.plan_ref is None:
        state.trace.note("nothing_to_add", revision=state.plan.revision)
        return reply
    if reply.team is not None and reply.team_ref is not None:
        context.take_team(reply.team, reply.team_ref)
    seen = state.labels | context.setup.earlier_labels  # its author has seen the findings
    _take_over(context, reply.plan, reply.plan_ref, reply.plan_ref, seen)
    generalist = context.team.generalist
    for subtask_id, role in reply.unknown_roles.items():
        state.warn(f"the team has no role {quoted(role)}: {generalist} does {subtask_id}")
        state.trace.note("role_unknown", subtask_id, role=role, by=generalist)
    if reply.put_right:
        state.trace.note("plan_put_right", changes=[*reply.put_right])
    state.trace.note(
        "plan_accepted",
        subtasks=len(reply.plan.subtasks),
        revision=reply.plan.revision,
        strategy=reply.strategy,
        reasoning=reply.plan.reasoning,
        estimated_tokens=sum(subtask.estimated_tokens for subtask in reply.plan.subtasks),
        expected=reply.estimate.total.line if reply.estimate else "",
        plan=planned(reply.plan),
        plan_ref=reply.plan_ref,
    )
    return reply


def _take_over(context: RunContext, plan: Plan, ref: str, described_in: str, labels: Labels) -> None:
    """Takes over a revision of the plan; its new subtasks are `described_in` it, or in a part of it."""
    context.take_plan(plan, ref, described_in, labels)
    context.state.adopt(plan)


def _no_plan(text: str, problems: list[str], incapable: bool = False) -> SupervisionError:
    if incapable:
        kind = ErrorKind.NO_CAPABLE_WORKER
    elif any("no subtasks" in item for item in problems):
        kind = ErrorKind.NO_SUBTASKS
    else:
        kind = ErrorKind.INVALID_PLAN
    return SupervisionError(kind, f"{text}: {'; '.join(problems[:_PROBLEMS_SHOWN])}")


async def _expand(context: RunContext, template_id: str) -> None:
    """Adopts the revision that has the items of a template, as many as the budget has room for; else it fails."""
    state = context.state
    board, template = state.board, state.board.subtask(template_id)
    ended = [report.usage for report in board.reports() if report.state == "completed" and report.finding]
    room, why = room_for(template, board.items, state.time_and_budget.affordable(template.estimated_tokens, ended))
    findings = [
        report.finding
        for report in board.completed_for(template_id)
        if template.names_items_of in (report.id, report.template)
    ]
    call = ExpandInput(
        run=context.run,
        plan_ref=context.plan_ref,
        team_ref=context.team_ref,
        template=template_id,
        named_ref=[finding.items_ref for finding in findings if finding and finding.items_ref],
        attachments=context.setup.attachments,
        room=room,
    )
    try:
        summary = f"the items of {template_id}"
        reply = await activity_calls.with_store(Expansions.expand_plan, limits.FILES_TIMEOUT, summary, call)
    except CallFailed as failed:
        _fail_template(context, template_id, failed.problem)
        return
    if reply.plan is None:
        _fail_template(context, template_id, _no_items(reply, why, template.for_each or ""))
        return
    await look_up(context, reply.plan_ref, context.team_ref)  # before an item can begin
    labels = Labels.of(findings) | context.plan_labels[template_id]
    _take_over(context, reply.plan, reply.plan_ref, reply.items_ref or reply.plan_ref, labels)
    count = min(room, reply.found - reply.unread)
    board.leave_out(template_id, reply.found - reply.unread - count, why)
    board.leave_out(template_id, reply.unread, reply.problem)
    state.trace.note("items_planned", template_id, items=count, found=reply.found, revision=reply.plan.revision)
    context.show()


def _no_items(reply: ExpandReply, why: str, for_each: str) -> Problem:
    if reply.found and not reply.problem:
        return Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=f"none of {reply.found} items: {why}")
    return Problem(type=ErrorKind.CANNOT_DO, message=reply.problem or f"there are no items in {for_each}")


def _fail_template(context: RunContext, template_id: str, problem: Problem) -> None:
    board = context.state.board
    board.begin(template_id, board[template_id].role)
    board.end(template_id, "failed", problem)
    context.state.trace.note("subtask_failed", template_id, error=problem.type, message=problem.message)
