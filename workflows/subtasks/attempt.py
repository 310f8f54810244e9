"""One attempt of a subtask: its worker agents to their end, through waits for the provider and refills of budget."""

import asyncio
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import NamedTuple

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import SubtaskBrief
    from supervision.base import limits
    from supervision.base.errors import ACCOUNT, ErrorKind, SupervisionError, run_kind
    from supervision.base.queues import pool_queue
    from supervision.base.text import one_line
    from supervision.budget.amount import Amount
    from supervision.contract.finding import Labels
    from supervision.contract.result import Problem, SubtaskReport
    from supervision.contract.team import RoleCard
    from supervision.run.attempt_rules import AfterAgent, after_agent, child_id
    from supervision.run.slots import Slot
    from workflows.calls.asking import as_refs, judge, shown, wait_for_model
    from workflows.calls.failures import CallFailed
    from workflows.children.child_contracts import LoopProgress, WorkerAgentInput, WorkerAgentResult
    from workflows.run_context import RunContext, stop_all
    from workflows.subtasks.assignment import Assignment, ask_about_calls
    from workflows.subtasks.child_runs import run_nested, run_worker_agent


class _Funding(NamedTuple):
    """What a worker agent may use; the `last` grant is for the one call in which it can still conclude."""

    grant: Amount
    last: bool


async def run_attempt(assignment: Assignment) -> WorkerAgentResult:
    """Runs the next attempt, by one worker agent or by several candidates, and returns the best result."""
    context, subtask_id, state = assignment.context, assignment.subtask_id, assignment.context.state
    subtask = state.board.subtask(subtask_id)
    candidates = 1 if assignment.role.team or assignment.role.person else subtask.candidates
    number = state.board[subtask_id].attempts + 1
    state.board.start(subtask_id, child_id(workflow.info().workflow_id, subtask_id, number, int(candidates > 1)))
    why = one_line(subtask.reasoning, limits.SENTENCE_BYTES)
    state.trace.note("subtask_started", subtask_id, attempt=number, role=assignment.role.name, reasoning=why)
    context.show()
    attempt = _Attempt(assignment, number)
    slot = assignment.slot or Slot(assignment.role)
    if assignment.role.person is not None:
        context.free(slot)
        try:
            return await assignment.ask_for_finding(number, assignment.role.person)
        except CallFailed as failed:
            return WorkerAgentResult(problem=failed.problem)
        except (asyncio.CancelledError, SupervisionError):  # the run was stopped, or its time is over
            return WorkerAgentResult(stopped=True)
    if candidates == 1:
        return await attempt.run_candidate(0, slot)
    others = [context.team.find(name) for name in subtask.candidate_roles]
    roles = [assignment.role, *[role for role in others if role is not None]]
    return await attempt.run_candidates([slot, *[Slot(role) for role in islice(cycle(roles), 1, candidates)]])


@dataclass(frozen=True)
class _Attempt:
    assignment: Assignment
    number: int

    @property
    def context(self) -> RunContext:
        return self.assignment.context

    @property
    def subtask_id(self) -> str:
        return self.assignment.subtask_id

    async def run_candidates(self, slots: list[Slot]) -> WorkerAgentResult:
        """Runs several worker agents, as slots allow; a judge chooses among their findings. All are paid."""
        roles = [slot.role for slot in slots]
        running = [
            asyncio.create_task(
                replace(self, assignment=replace(self.assignment, role=slot.role)).run_candidate(k, slot)
            )
            for k, slot in enumerate(slots, 1)
        ]
        try:
            await workflow.wait(running, return_when=asyncio.FIRST_EXCEPTION)
            if not all(task.done() for task in running):  # one failed the run: the others would work for nothing
                await stop_all(running)
            results = [task.result() for task in running]
            for number, result in enumerate(results, 1):
                head = {"head": result.head} if result.head else {}
                self.context.state.trace.note("candidate_ended", self.subtask_id, candidate=number, **head)
            index = await self._best(results, roles)
        except asyncio.CancelledError:
            # Cancelled while they run, or while the judge does: each hands in what it has, the first finding counts.
            await stop_all(running)
            return self.assignment.best or WorkerAgentResult(stopped=True)
        chosen = self.context.state.board[self.subtask_id]
        chosen.workflow_id = child_id(workflow.info().workflow_id, self.subtask_id, self.number, index + 1)
        chosen.model = results[index].model or None
        self.context.state.board.begin(self.subtask_id, roles[index].name)
        return results[index]

    async def _best(self, results: list[WorkerAgentResult], roles: list[RoleCard]) -> int:
        """Returns the index of the best result; a judge is asked only where there is a choice."""
        reports = {
            index: SubtaskReport(id=self.subtask_id, role=roles[index].name, state="completed", finding=result.finding)
            for index, result in enumerate(results)
            if result.finding and result.succeeded
        }
        if len(reports) < 2:
            return next(iter(reports), 0)
        state = self.context.state
        description = state.board.subtask(self.subtask_id).description
        choice, reason = await judge(self.context, "select", description, as_refs(list(reports.values())))
        choice = choice or 0
        state.trace.note("candidate_chosen", self.subtask_id, choice=choice + 1, of=len(reports), reason=reason)
        return list(reports)[choice]

    async def run_candidate(self, candidate: int, slot: Slot) -> WorkerAgentResult:
        """Runs one worker agent to its end, in a slot that it gives back while it waits and at the end."""
        try:
            return await self._run_candidate(candidate, slot)
        finally:
            self.context.free(slot)
            self.context.state.models.leave(slot)

    async def _run_candidate(self, candidate: int, slot: Slot) -> WorkerAgentResult:
        """Runs one worker agent to its end; after each wait and each refill it resumes from where it stood."""
        state = self.context.state
        account, models = f"{self.subtask_id}.{self.number}.{candidate}", self.assignment.models
        progress = (None if candidate else self.assignment.resume_from) or LoopProgress()
        booked = result = WorkerAgentResult()
        stood: dict[str, LoopProgress] = {}  # where the conversations with other models stand
        model = "" if self.assignment.role.team else state.models.choose(models)
        while True:
            provider = model or account  # a nested supervisor waits for its models itself, each for its own
            try:
                await self._until_served(provider, slot)
                funding = await self._fund(account, slot, under_way=progress.turn > 0)
            except (asyncio.CancelledError, SupervisionError):  # the run was stopped, or its time is over
                return result.when_stopped()
            if funding is None:
                spent = Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=state.time_and_budget.spent_line())
                return result.model_copy(update={"problem": spent})
            result = await self._run_agent(candidate, booked, account, funding, progress, model)
            result.model = model
            booked = WorkerAgentResult(usage=booked.usage + result.usage, turns=booked.turns + result.turns)
            self._book(account, result)
            if (other := self._following(result)) is not None:
                # Thinking is bound to the model that thought it: the other one begins a conversation of its own.
                state.models.leave(slot)
                if result.progress is not None:
                    stood[model] = result.progress.booked()
                model, progress = other, stood.get(other) or LoopProgress()
                continue
            step = self._next_step(result, funding)
            if step is AfterAgent.END:
                if not result.stopped:
                    state.models.answered(provider, slot)
                if not _went_first(result):
                    return result
            following = await self._until_continued(step, provider, candidate, slot, result)
            if isinstance(following, WorkerAgentResult):
                return following
            progress = following

    async def _until_continued(
        self, step: AfterAgent, provider: str, candidate: int, slot: Slot, result: WorkerAgentResult
    ) -> LoopProgress | WorkerAgentResult:
        """Returns where the worker agent continues, after its waits for people; its result if it does not.

        Raises SupervisionError if the provider refuses all work and the run has no finding to lose.
        """
        context, problem = self.context, result.problem
        progress = result.progress.booked() if result.progress else LoopProgress()
        try:
            if step is AfterAgent.WAIT_PERSON:
                context.state.models.answered(provider, slot)
                context.free(slot)
                attempt = f"{self.number}.{candidate}" if candidate else str(self.number)
                return await ask_about_calls(context, self.subtask_id, attempt, progress)
            if problem is None or step in (AfterAgent.RETRY_FUNDED, AfterAgent.WAIT_RESUMED):
                return progress
            if step is AfterAgent.WAIT_PROVIDER:
                again = result.retry_after, workflow.random().random()
                context.state.model_away(provider, slot, problem.message, *again)
                return progress
            context.free(slot)  # for others, while this one waits
            if step is AfterAgent.FAIL_RUN and not await context.wait_for_first_finding(self.subtask_id):
                raise SupervisionError(run_kind(problem.type), problem.message)
            context.state.model_away(provider, slot, problem.message)
        except asyncio.CancelledError:
            return result.when_stopped()
        except SupervisionError:
            if step is AfterAgent.WAIT_PERSON:  # the run's time is over
                return result.when_stopped()
            raise
        except CallFailed as failed:  # a person's words could not be stored
            return result.model_copy(update={"problem": failed.problem, "progress": None})
        return progress

    def _next_step(self, result: WorkerAgentResult, funding: _Funding) -> AfterAgent:
        problem = result.problem
        # A nested supervisor waits itself; one that was refused before there was any finding starts again.
        again = bool(self.assignment.role.team) and problem is not None and problem.type in ACCOUNT
        return after_agent(
            problem.type if problem else None,
            can_resume=(again or result.progress is not None) and not result.stopped,
            had_last_grant=funding.last,
            has_finding=self.context.state.has_finding,
        )

    async def _until_served(self, model: str, slot: Slot) -> None:
        """Returns when the model may be called; work that waits for it holds no slot."""
        outage = self.context.state.models.outage(model)
        if outage is not None and outage.first is not slot:
            self.context.free(slot)
            await wait_for_model(self.context, self.subtask_id, model, slot, attempt=self.number)

    def _following(self, result: WorkerAgentResult) -> str | None:
        """Returns the model that takes over after a worker agent's end; None if it need not, or none can."""
        problem, model, state = result.problem, result.model, self.context.state
        if self.assignment.role.team or problem is None or result.stopped:
            return None
        following = state.models.failed(model, self.assignment.models, problem.type, result.retry_after)
        if following == model:
            return None
        head = {"head": result.head} if result.head else {}
        state.trace.note("model_replaced", self.subtask_id, model=model, by=following, why=problem.type, **head)
        return following

    async def _fund(self, account: str, slot: Slot, *, under_way: bool) -> _Funding | None:
        """Returns a slice of the budget, and holds the slot; at its end the last grant for work `under_way`, else None.

        While the run is paused it waits, without a slot. A nested supervisor asks for more first. While other worker
        agents hold grants it waits: some may be returned.
        """
        context = self.context
        budget, board, refused = context.state.time_and_budget, context.state.board, context.parent is None
        while True:
            if context.state.steering.paused:
                context.free(slot)
                await context.until_resumed()
            await context.hold(slot)
            if context.state.steering.paused:
                continue
            shares = budget.shares(board.agents(context.state.request.max_parallel))
            if (grant := budget.ledger.grant(account, shares)) is not None:
                return _Funding(grant, last=False)
            if refused and not budget.ledger.open_grants:
                return _Funding(budget.ledger.last_grant(account), last=True) if under_way else None
            refused = not await self._wait_for_budget(slot)

    async def _wait_for_budget(self, slot: Slot) -> bool:
        """Returns when there may be some: False if the supervisor above has none left.

        It holds no slot: agents with budget may need it, to end and return some.
        """
        budget = self.context.state.time_and_budget
        self.context.free(slot)
        budget.agents_waiting += 1
        try:
            if await self.context.more_budget(limits.LEAST_GRANT_TOKENS):
                return True
            # Several may wake from this wait at once, and the first takes what is free: so they ask again.
            await workflow.wait_condition(lambda: not budget.ledger.exhausted or not budget.ledger.open_grants)
            return False
        finally:
            budget.agents_waiting -= 1
            self.context.changed.set()

    def _book(self, account: str, result: WorkerAgentResult) -> None:
        """Books what a worker agent consumed, whatever became of it, and keeps what it came to."""
        state, role = self.context.state, self.assignment.role
        state.time_and_budget.ledger.settle(account, result.usage)
        if role.team:
            state.spending.add_team(role.name, result.spend, result.usage)
        else:
            state.note_spending(role.name, result.model, result.usage)
        succeeded = result.finding if result.succeeded else None
        state.labels |= succeeded.labels if succeeded else result.labels
        state.child_has_finding |= result.finding is not None and not result.stopped and result.progress is None
        state.board.record(self.subtask_id, result.turns, result.usage, result.gaps)
        self.assignment.results.append(result)

    async def _run_agent(
        self,
        candidate: int,
        booked: WorkerAgentResult,
        account: str,
        funding: _Funding,
        progress: LoopProgress,
        model: str,
    ) -> WorkerAgentResult:
        """Runs the child: a worker agent, or the supervisor of a team. Its id is the same after each wait."""
        context, role = self.context, self.assignment.role
        if role.team:
            return await run_nested(context, role, self._brief(), self.number, booked, account, funding.grant)
        agent = self._agent_input(candidate, funding, progress, model)
        agent.goes_first = context.state.models.outage(model) is not None
        context.state.board[self.subtask_id].model = model
        return await run_worker_agent(context, agent, booked)

    def _brief(self) -> SubtaskBrief:
        context, board, assignment = self.context, self.context.state.board, self.assignment
        subtask = board.subtask(self.subtask_id)
        completed, missing = board.completed_for(self.subtask_id), shown(board.missing_for(self.subtask_id))
        labels = Labels.of(report.finding for report in completed) | context.plan_labels[self.subtask_id]
        if missing or assignment.feedback or assignment.description_ref:  # words of others on the work so far
            labels |= context.state.labels
        if subtask.attachments or subtask.template:
            labels |= context.setup.data_labels
        return SubtaskBrief(
            goal_ref=context.setup.goal_ref,
            plan_ref=context.described_in[self.subtask_id],
            subtask_id=self.subtask_id,
            dependencies=as_refs(completed, board),
            missing=missing,
            attachments=[item for item in context.setup.attachments if item.name in subtask.attachments],
            description_ref=assignment.description_ref,
            feedback=assignment.feedback,
            previous_ref=assignment.previous.text_ref if assignment.previous else None,
            names_items=board.names_items(self.subtask_id),
            labels=labels,
        )

    def _agent_input(self, candidate: int, funding: _Funding, progress: LoopProgress, model: str) -> WorkerAgentInput:
        context, state, role = self.context, self.context.state, self.assignment.role
        pool = pool_queue(role.pool) if role.pool else None
        effort = role.effort.of_attempt(self.number) if role.effort else state.request.effort
        return WorkerAgentInput(
            run=context.run,
            team_ref=context.team_ref,
            role=role.model_copy(update={"model": model, "fallback_models": []}),
            effort=effort,
            subtask_id=self.subtask_id,
            attempt=self.number,
            candidate=candidate,
            brief=self._brief(),
            max_turns=min(state.request.max_turns, role.max_turns or limits.MAX_TURNS),
            tools_queue=pool or context.setup.tools_queue,
            outward_queue=pool or context.setup.outward_queue,
            model_queue=(pool if role.pool_model else None) or context.setup.model_queue,
            expires_at=state.time_and_budget.latest_deadline_at,
            timeout_seconds=state.timeout_of(self.subtask_id),
            grant=funding.grant,
            last_grant=funding.last,
            progress=progress,
        )


def _went_first(result: WorkerAgentResult) -> bool:
    """True for a worker agent that ended only to show that the model answers again: it is continued."""
    return result.problem is None and not result.stopped and result.finding is None and result.progress is not None
