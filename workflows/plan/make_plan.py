"""Making plans: the first one, the next step, a revision; approved by a person where required.

A plan that cannot run goes back to the model at most twice.
"""

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PlanInput, PlanReply, WorkNote
    from activities.questions.planning import PLAN
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.base.text import one_line, quoted
    from temporal_supervisor.supervision.budget.ledger import call_estimate
    from temporal_supervisor.supervision.contract.result import SubtaskReport
    from temporal_supervisor.supervision.contract.strategy import StrategyName
    from temporal_supervisor.supervision.run.board import Board
    from temporal_supervisor.supervision.run.decisions import Decision
    from temporal_supervisor.supervision.run.events import plan_fields
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls.saved_work import EarlierFindings
    from workflows.calls.supervisor_model import SupervisorModel
    from workflows.plan.approval import Approval
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms

# How a person's comment may bring no other plan: it ends no run, the plan before it is shown again.
_NO_OTHER_PLAN = (
    ErrorKind.INVALID_REQUEST,
    ErrorKind.INVALID_PLAN,
    ErrorKind.NO_SUBTASKS,
    ErrorKind.NO_CAPABLE_WORKER,
    ErrorKind.BUDGET_EXHAUSTED,
)
_PROBLEMS_SHOWN = 20  # of a plan that cannot run


class PlanMaker:
    """Has plans written, checked and approved, and puts them in force."""

    def __init__(
        self,
        terms: RunTerms,
        state: RunState,
        plan: PlanInForce,
        model: SupervisorModel,
        earlier: EarlierFindings,
        approval: Approval,
    ) -> None:
        self._terms = terms
        self._state = state
        self._plan = plan
        self._model = model
        self._earlier = earlier
        self._approval = approval
        # The question to which the planner last replied that nothing is missing, with that reply.
        self._finished: tuple[PlanInput, PlanReply] | None = None

    async def make_plan(self, strategy: StrategyName, missing: Sequence[str] = ()) -> PlanReply:
        """Returns a plan that can run, put in force: the caller's own plan, or the planner's.

        `missing` lists points that the plan so far lacks. Raises SupervisionError if there is no
        plan after PLAN_TRIES tries.
        """
        call = self._call(strategy, missing)
        reply = await self._plan_with_savings(call)
        if call.own_plan and not reply.plan:
            raise _no_plan("the plan cannot run", reply.problems, _error_kind(reply))
        reply = await self._approved(call, reply)
        self._put_in_force(reply)
        return reply

    async def next_step(self) -> bool:
        """Asks the planner for the next subtask.

        Returns False if none is needed, or if the planner gives no usable answer.
        """
        state = self._state
        budget = state.time_and_budget
        if state.shares.subtasks_left == 0 or not budget.time_left or budget.ledger.exhausted:
            return False
        try:
            reply = await self.make_plan("step")
        except SupervisionError as error:
            if not state.board.usable():
                raise
            state.warn(f"no next step: {error.message}")
            return False
        return not reply.finished

    def _call(self, strategy: StrategyName, missing: Sequence[str]) -> PlanInput:
        """Returns the input for a first plan, or for a revision of the current one."""
        state, terms, setup = self._state, self._terms, self._terms.setup
        request, has_plan = state.request, bool(state.plan.subtasks)
        latest = max(state.plan.revision, state.proposals.number)
        return PlanInput(
            **self._model.call_fields,
            team_ref=self._plan.team_ref,
            attachments=setup.attachments,
            max_subtasks=request.max_subtasks - state.nested.subtasks,
            max_turns=request.max_turns,
            max_tokens=request.max_tokens or limits.PLAN_MAX_TOKENS,
            estimates=request.approve_plan and terms.nested is None,
            strategy=strategy,
            nesting_left=max(0, request.max_depth - terms.depth),
            missing=list(missing),
            own_plan=None if has_plan else request.plan,
            answer_schema_ref=setup.answer_schema_ref,
            earlier_ref=setup.earlier_ref,
            revision=latest + 1 if has_plan else 1,
        )

    async def _plan_with_savings(self, call: PlanInput) -> PlanReply:
        """Returns a plan, its estimate reduced by the findings of earlier runs that it takes."""
        return await self._earlier.with_savings(await self._plan_in_tries(call))

    async def _plan_in_tries(self, call: PlanInput) -> PlanReply:
        """Returns a plan that can run, or the reply to a plan that was given.

        Raises SupervisionError after PLAN_TRIES tries.
        """
        state = self._state
        prompt_bytes = state.goal_bytes + limits.PLAN_PROMPT_BYTES
        tokens = 0 if call.own_plan else call_estimate(prompt_bytes)
        kind = ErrorKind.INVALID_PLAN  # of the error, once a plan has problems
        for attempt in range(1, limits.PLAN_TRIES + 1):
            # The work as it stands now: a revision is made while subtasks run.
            done = _work_notes(state.board) if call.revision > 1 else []
            call = call.model_copy(update={"attempt": attempt, "done": done})
            known = self._known_reply_to(call)
            if known is not None:
                return known
            if not call.own_plan:
                state.trace.note("plan_requested", attempt=attempt, revision=call.revision)
            reply = await self._ask_planner(call, tokens, kind)
            if call.own_plan:
                return reply
            if reply.refusal:
                why = f"the planner refused the goal: {reply.refusal}"
                raise SupervisionError(ErrorKind.INVALID_PLAN, why)
            if reply.finished:
                self._finished = call, reply
                return reply
            if reply.plan and reply.plan_ref:
                return reply
            problems = reply.problems[:_PROBLEMS_SHOWN]
            state.trace.note("plan_rejected", attempt=attempt, problems=[*problems])
            call = call.model_copy(update={"problems": problems})
            kind = _error_kind(reply)
        why = f"no plan that can run after {limits.PLAN_TRIES} tries"
        raise _no_plan(why, call.problems, kind)

    def _known_reply_to(self, call: PlanInput) -> PlanReply | None:
        """Returns the reply that nothing is missing, if the planner gave it to this question.

        A retry may have changed nothing that the planner sees. Its reply is stored then: it would
        be read again without a call, and booked as if there had been one.
        """
        if self._finished is None:
            return None
        question, reply = self._finished
        return reply if question == call else None

    async def _ask_planner(self, call: PlanInput, tokens: int, kind: ErrorKind) -> PlanReply:
        """Returns the planner's reply to one try.

        Raises SupervisionError; of this kind if there is no room to name the problems of the plan.
        """
        try:
            with self._state.time_and_budget.own_work():
                return await self._model.reply_to(PLAN, call, tokens)
        except SupervisionError as error:
            if error.kind is ErrorKind.INVALID_REQUEST and call.problems:
                why = f"the plan cannot run, nor be mended ({error.message})"
                raise _no_plan(why, call.problems, kind) from error
            raise

    async def _approved(self, call: PlanInput, reply: PlanReply) -> PlanReply:
        """Returns the approved plan: the one in the reply, or one that a person made from it.

        Raises SupervisionError if the plan was rejected.
        """
        proposals = self._state.proposals
        problem = ""
        while self._approval.is_needed(reply):
            # Each plan that is shown has a number of its own, and one that is shown again another.
            number = proposals.next_number(reply.plan.revision if reply.plan else 0)
            decision = await self._approval.decision(reply, number, problem)
            if decision.choice == "approve":
                break
            if decision.choice == "reject":
                words = f"the plan was rejected: {decision.text}".removesuffix(": ")
                raise SupervisionError(ErrorKind.PLAN_REJECTED, words)

            changed, problem = await self._changed_plan(call, reply, decision, number)
            if changed is None:
                continue  # the plan before is shown again, with the problem
            reply = changed
            proposals.show_estimate(reply.estimate)
            if decision.choice == "edit":
                break  # a person's own plan needs no approval
        proposals.approve_roles_of(reply.plan)
        return reply

    async def _changed_plan(
        self, call: PlanInput, reply: PlanReply, decision: Decision, number: int
    ) -> tuple[PlanReply | None, str]:
        """Returns the plan that replaces the one in `reply`, or None with the reason for none."""
        changed_call = _call_for_change(call, reply, decision, number)
        try:
            changed = await self._plan_with_savings(changed_call)
        except SupervisionError as error:
            if error.kind not in _NO_OTHER_PLAN:
                raise
            return None, f"the planner has no other plan: {error.message}"
        if changed.plan is None:
            return None, _why_no_plan(changed)
        return changed, ""

    def _put_in_force(self, reply: PlanReply) -> None:
        """Puts the plan of a reply in force, if there is one."""
        state, plan = self._state, reply.plan
        if plan is None or reply.plan_ref is None:
            state.trace.note("nothing_to_add", revision=state.plan.revision)
            return
        if reply.team is not None and reply.team_ref is not None:
            self._plan.replace_team(reply.team, reply.team_ref)
        # Its author has seen the findings.
        seen = state.work_done.labels | self._terms.setup.earlier_labels
        self._plan.adopt(plan, reply.plan_ref, seen)
        self._note_unknown_roles(reply.unknown_roles)
        if reply.put_right:
            state.trace.note("plan_put_right", changes=[*reply.put_right])
        state.trace.note(
            "plan_accepted",
            subtasks=len(plan.subtasks),
            revision=plan.revision,
            strategy=reply.strategy,
            reasoning=plan.reasoning,
            estimated_tokens=sum(subtask.estimated_tokens for subtask in plan.subtasks),
            expected=reply.estimate.total.line if reply.estimate else "",
            plan=plan_fields(plan),
            plan_ref=reply.plan_ref,
        )

    def _note_unknown_roles(self, unknown_roles: dict[str, str]) -> None:
        """Warns of subtasks with a role that the team lacks: the generalist does them."""
        generalist = self._plan.team.generalist
        for subtask_id, role in unknown_roles.items():
            self._state.warn(f"the team has no role {quoted(role)}: {generalist} does {subtask_id}")
            self._state.trace.note("role_unknown", subtask_id, role=role, by=generalist)


def _call_for_change(
    call: PlanInput, reply: PlanReply, decision: Decision, number: int
) -> PlanInput:
    """Returns the input for a plan that replaces the one in `reply`, as a person asked."""
    changed: dict[str, object] = {"revision": number + 1, "own_plan": decision.plan}
    if decision.plan is None:
        changed |= {"head": reply.head, "comment": decision.text}
    return call.model_copy(update=changed)


def _why_no_plan(reply: PlanReply) -> str:
    """Returns the reason why a person's edit or comment led to no plan."""
    if reply.finished:
        return "the planner has no other plan"
    return f"the edited plan cannot run: {'; '.join(reply.problems)}"


def _work_notes(board: Board) -> list[WorkNote]:
    """Returns a note on each subtask for the planner, all within one payload."""
    reports = [report for report in board.reports() if report.template is None]
    share = max(limits.NOTE_LEAST_BYTES, limits.NOTES_BYTES // max(1, len(reports)))
    room = min(share, limits.PARAGRAPH_BYTES)
    return [_work_note(report, room) for report in reports]


def _work_note(report: SubtaskReport, room: int) -> WorkNote:
    text = one_line(_note_text(report), room)
    return WorkNote(subtask_id=report.id, role=report.role, state=report.state, note=text)


def _note_text(report: SubtaskReport) -> str:
    if report.counts:
        return f"{report.counts.completed} of {report.counts.total} items completed"
    if report.error:
        tries = f" (after {report.attempts} attempts)" if report.attempts > 1 else ""
        return f"{report.error.type}: {report.error.message}{tries}"
    return report.finding.summary if report.finding else report.description


def _error_kind(reply: PlanReply) -> ErrorKind:
    """Returns the kind of the error if the problems of a reply are the last word."""
    if reply.incapable:
        return ErrorKind.NO_CAPABLE_WORKER
    return ErrorKind.NO_SUBTASKS if reply.without_subtasks else ErrorKind.INVALID_PLAN


def _no_plan(text: str, problems: list[str], kind: ErrorKind) -> SupervisionError:
    return SupervisionError(kind, f"{text}: {'; '.join(problems[:_PROBLEMS_SHOWN])}")
