"""One agent's part in an attempt: a worker agent, or the supervisor of a team."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.prompts.agent_prompts import already_done, is_denial
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import FATAL, ErrorKind, SupervisionError
    from temporal_supervisor.supervision.base.queues import pool_queue
    from temporal_supervisor.supervision.budget.ledger import Amount
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.team import RoleCard
    from temporal_supervisor.supervision.run.attempt_rules import AfterAgent, after_agent, child_id
    from temporal_supervisor.supervision.run.nested_runs import NestedGrant
    from temporal_supervisor.supervision.run.slots import Slot

    from workflows.calls.activity_calls import CallFailed
    from workflows.children.child_contracts import (
        LoopProgress,
        NestedInput,
        WorkerAgentInput,
        WorkerAgentResult,
    )
    from workflows.subtasks.assignment import Assignment
    from workflows.subtasks.call_decisions import CallDecisions
    from workflows.subtasks.child_runs import ChildStart
    from workflows.subtasks.subtask_brief import brief_of, nested_request


class AgentRun:
    """A worker agent, or the supervisor of a team, over all its executions and waits.

    It works in a `slot`, which it releases while it waits.
    """

    def __init__(self, work: Assignment, role: RoleCard, candidate: int, slot: Slot) -> None:
        self.role = role
        self._work = work
        self._context = work.context
        self._state = work.context.state
        self._subtask_id = work.subtask_id
        self._number = work.report.attempts
        self._slot = slot
        # Also names the agent's account in the ledger.
        self.workflow_id = child_id(
            workflow.info().workflow_id, self._subtask_id, self._number, candidate
        )
        # A nested supervisor has models of its own, and waits for them itself.
        self._chain = list(self.role.models)
        self._model = "" if self.role.team else self._state.models.choose(self._chain)
        self._progress = work.resume_from or LoopProgress()
        timeout = self._state.request.approval_timeout
        self._decisions = CallDecisions(self._context.waiting, timeout)
        # The progress in the conversations with earlier models, by model.
        self._left_conversations: dict[str, LoopProgress] = {}
        self._booked = WorkerAgentResult()  # the usage and the turns so far
        # True with the last grant, for one call in which the agent can still conclude.
        self._has_last_grant = False

    async def run(self) -> WorkerAgentResult:
        """Returns the agent's result, which is partial if this is cancelled."""
        try:
            return await self._run_executions()
        finally:
            self._context.slots.release(self._slot)
            self._state.models.leave(self._slot)

    async def _run_executions(self) -> WorkerAgentResult:
        """Runs one execution after another, with the waits between them."""
        result = WorkerAgentResult()
        while True:
            try:
                await self._until_served()
                grant = await self._acquire_grant()
            except (asyncio.CancelledError, SupervisionError):
                # The run was stopped, or its time is over.
                return result.as_stopped()
            if grant is None:
                why = self._state.time_and_budget.spent_line()
                no_budget = Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=why)
                return result.model_copy(update={"problem": no_budget})

            # However it ends, also by a cancel, it returns what it used: no grant stays open.
            result = (await self._run_child(grant)).by_model(self._model)
            self._book(result)
            if self._switch_model(result):
                continue

            failed_by = result.problem.type if result.problem else None
            if failed_by in FATAL and not self._state.first_finding.exists:
                # Its slot is for work that may bring the run's first finding.
                self._context.slots.release(self._slot)
                try:
                    await self._until_finding()
                except asyncio.CancelledError:
                    return result.as_stopped()
            step = after_agent(
                failed_by,
                can_resume=result.progress is not None and not result.stopped,
                had_last_grant=self._has_last_grant,
                has_finding=self._state.first_finding.exists,
            )
            has_ended = step is AfterAgent.END
            if not result.stopped and (has_ended or result.problem is None):
                self._state.models.answered(self._model, self._slot)
            if has_ended:
                return result
            ended = await self._prepare_to_continue(step, result)
            if ended is not None:
                return ended

    async def _prepare_to_continue(
        self, step: AfterAgent, result: WorkerAgentResult
    ) -> WorkerAgentResult | None:
        """Prepares the next execution, and waits for people before it.

        Returns the result if there is no next execution.
        """
        why = result.problem.message if result.problem else ""
        self._progress = result.progress.booked() if result.progress else LoopProgress()
        if step is AfterAgent.WAIT_PERSON:
            return await self._until_decided(result)
        if step is AfterAgent.WAIT_PROVIDER:
            chance = workflow.random().random()
            self._state.model_away(self._model, self._slot, why, result.retry_after, chance)
        elif step is AfterAgent.WAIT_RESUME:
            self._context.slots.release(self._slot)  # for others, while this one waits
            self._state.model_away(self._model, self._slot, why)
        return None

    async def _until_decided(self, result: WorkerAgentResult) -> WorkerAgentResult | None:
        """Waits, without a slot, for people's decisions about the agent's calls.

        Returns the result if there can be no decisions.
        """
        self._state.models.answered(self._model, self._slot)
        self._context.slots.release(self._slot)
        place = self.workflow_id.removeprefix(f"{workflow.info().workflow_id}/")
        try:
            self._progress = await self._decisions.decide_pending(place, self._progress)
        except (asyncio.CancelledError, SupervisionError):
            # The run was stopped, or its time is over.
            return result.as_stopped()
        except CallFailed as failed:
            # A person's words could not be stored.
            return result.model_copy(update={"problem": failed.problem, "progress": None})
        if any(is_denial(answer.text or "") for answer in self._progress.results):
            self._mark_denied()
        return None

    def _mark_denied(self) -> None:
        """Marks a call as refused by a person: no other role is asked, here or above."""
        self._work.mark_denied()
        self._state.work_done.mark_denied()

    async def _until_finding(self) -> None:
        """Returns once the run has a finding, or all work under way is refused, as this one is.

        So the work decides whether the run fails, not the order in which the provider answers.
        """
        first_finding = self._state.first_finding
        first_finding.refuse(self._subtask_id)
        try:
            await workflow.wait_condition(
                lambda: first_finding.exists or not first_finding.may_come
            )
        finally:
            first_finding.refuse_no_longer(self._subtask_id)

    async def _until_served(self) -> None:
        """Returns when the model may be called; without a slot while the work waits for it."""
        outage = self._state.models.outage(self._model)
        if outage is not None and outage.first is not self._slot:
            self._context.slots.release(self._slot)
            await self._context.waiting.until_served(
                self._subtask_id, self._model, self._slot, attempt=self._number
            )

    def _switch_model(self, result: WorkerAgentResult) -> bool:
        """Switches to the next model if the problem calls for it and there is one.

        Returns True if so.
        """
        problem, models = result.problem, self._state.models
        if self.role.team or problem is None or result.stopped:
            return False
        other = models.failed(self._model, self._chain, problem.type, result.retry_after)
        if other == self._model:
            return False
        replaced = {"model": self._model, "by": other, "why": problem.type}
        self._state.trace.note("model_replaced", self._subtask_id, **replaced, **result.refs)
        # Thinking is bound to the model that thought it: the other one begins a conversation of its
        # own.
        models.leave(self._slot)
        if result.progress is not None:
            self._left_conversations[self._model] = result.progress.booked()
        self._model = other
        self._progress = self._left_conversations.get(other, LoopProgress()).continued(
            self._booked.turns
        )
        if self._progress.head is not None and self._work.effects:
            # Effects of other models, after this one was left.
            self._progress.leave_note(already_done(self._work.effects))
        return True

    async def _acquire_grant(self) -> Amount | None:
        """Returns a slice of the budget, and holds the slot.

        When the budget is used up, work under way gets a last grant, other work None. It waits
        without a slot while the run is paused, and while other work holds grants, which may be
        returned.
        """
        context, budget = self._context, self._state.time_and_budget
        self._has_last_grant = False
        while True:
            if self._state.steering.paused:
                context.slots.release(self._slot)
                await context.waiting.until_resumed()
            await context.slots.acquire(self._slot)
            if self._state.steering.paused:
                continue
            grant = budget.ledger.grant(self.workflow_id, self._slice_count())
            if grant is not None:
                return grant
            if not budget.ledger.open_grants:
                has_begun = self._progress.turn > 0
                self._has_last_grant = has_begun
                return budget.ledger.last_grant(self.workflow_id) if has_begun else None
            await self._wait_for_budget()

    def _slice_count(self) -> float:
        """Returns the number of slices of the free budget; this work gets one of them."""
        if self.role.team:
            return self._state.shares.slices_for(self._subtask_id)
        agents = self._state.board.agent_count(self._state.request.max_parallel)
        return self._state.time_and_budget.shares(agents)

    async def _wait_for_budget(self) -> None:
        """Returns when other work has returned budget, or when no grant is held any more.

        It holds no slot: agents with budget may need it, to finish and return some.
        """
        budget = self._state.time_and_budget
        self._context.slots.release(self._slot)
        budget.agent_waits(self._subtask_id)
        self._context.changed.set()  # nothing else begins that could not be paid, too
        try:
            # Several may wake from this wait at once, and the first takes what is free: so they ask
            # again.
            await workflow.wait_condition(
                lambda: not budget.ledger.exhausted or not budget.ledger.open_grants
            )
        finally:
            budget.agent_waits_no_longer(self._subtask_id)
            self._context.changed.set()

    def _book(self, result: WorkerAgentResult) -> None:
        """Books the usage of a result, successful or not, and keeps the result."""
        state, before = self._state, self._booked
        self._booked = WorkerAgentResult(
            usage=before.usage + result.usage, turns=before.turns + result.turns
        )
        state.time_and_budget.ledger.settle(self.workflow_id, result.usage)
        if self.role.team:
            state.spending.add_team(self.role.name, result.spend, result.usage)
        else:
            state.add_spending(self.role.name, result.model, result.usage)
        self._work.add_result(result)
        if result.was_denied:  # below, in a nested run
            self._mark_denied()
        labels = result.finding.labels if result.finding and result.succeeded else result.labels
        state.work_done.add(result.effects, labels)
        state.board.book(self._subtask_id, result.turns, result.usage, result.gaps)

    async def _run_child(self, grant: Amount) -> WorkerAgentResult:
        """Runs the child: a worker agent, or the supervisor of a team.

        It keeps its id over all executions.
        """
        if self.role.team:
            return await self._run_nested(grant)
        self._state.board.set_model(self._subtask_id, self._model)
        start = ChildStart(self.workflow_id, self.role, self._agent_input(grant), self._booked)
        return await self._context.children.run_child(start)

    async def _run_nested(self, budget: Amount) -> WorkerAgentResult:
        """Runs the supervisor of a team, with a grant that it keeps until its end."""
        subtasks = self._context.subtasks_for(self._subtask_id)
        if not subtasks:
            return WorkerAgentResult(problem=self._no_subtasks_left())
        terms = self._context.terms
        grant = NestedGrant(
            tokens=budget.tokens,
            usd=budget.usd,
            slots=self._slot.places,
            subtasks=subtasks,
        )
        nested = NestedInput(
            run=terms.run,
            depth=terms.depth + 1,
            brief=brief_of(self._work),
            grant=grant,
            has_finding=self._state.first_finding.exists,
        )
        request = nested_request(self._work, self.role.team)
        start = ChildStart(self.workflow_id, self.role, nested, self._booked, request)
        return await self._context.children.run_child(start)

    def _no_subtasks_left(self) -> Problem:
        left, most = self._state.shares.subtasks_left, self._state.request.max_subtasks
        message = (
            f"the role '{self.role.name}' is a team, whose plan needs at least "
            f"{limits.NESTED_SUBTASKS_LEAST} subtasks: {left} are left of the "
            f"{most} of max_subtasks"
        )
        return Problem(type=ErrorKind.INVALID_PLAN, message=message)

    def _agent_input(self, grant: Amount) -> WorkerAgentInput:
        state, terms, role = self._state, self._context.terms, self.role
        own: dict[str, object] = {
            "model": self._model,
            "fallback_models": [],
            "max_tokens": role.max_tokens or state.request.max_tokens,
        }
        effort = role.effort.of_attempt(self._number) if role.effort else state.request.effort
        pool = pool_queue(role.pool) if role.pool else None
        model_pool = pool if role.pool_model else None
        return WorkerAgentInput(
            run=terms.run,
            team_ref=self._context.plan.team_ref,
            role=role.model_copy(update=own),
            effort=effort,
            subtask_id=self._subtask_id,
            brief=brief_of(self._work),
            max_turns=min(state.request.max_turns, role.max_turns or limits.MAX_TURNS),
            tools_queue=pool or terms.setup.tools_queue,
            outward_queue=pool or terms.setup.outward_queue,
            model_queue=model_pool or terms.setup.model_queue,
            expires_at=state.time_and_budget.latest_deadline_at,
            timeout_seconds=state.timeout_of(self._subtask_id),
            grant=grant,
            last_grant=self._has_last_grant,
            goes_first=state.models.outage(self._model) is not None,
            progress=self._starting_progress(),
        )

    def _starting_progress(self) -> LoopProgress:
        """Returns the progress to continue from; a bare agent's conclusion is never sent back."""
        if not self._context.terms.is_bare:
            return self._progress
        return self._progress.model_copy(update={"objected": True})
