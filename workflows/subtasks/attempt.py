"""One attempt of a subtask: its worker agents to their end, through waits for the provider and refills of budget."""

import asyncio
from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import SubtaskBrief
    from supervision import limits
    from supervision.budget.amount import Grant
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.contract.team import RoleCard
    from supervision.errors import ACCOUNT, RESUMABLE, ErrorKind, SupervisionError, run_kind
    from supervision.queues import MODEL_QUEUE, pool_queue
    from supervision.run.role_breaker import Ticket
    from workflows.calls.finding_refs import as_refs
    from workflows.calls.judge_calls import select
    from workflows.child_contracts import Progress, WorkerAgentInput, WorkerAgentResult
    from workflows.failures import cancelled
    from workflows.run_context import RunContext
    from workflows.subtasks.children import Outcome, child_id, run_nested, run_worker_agent
    from workflows.subtasks.nesting import nested_input

_NOTHING = Outcome(WorkerAgentResult(stopped=True), stopped=True)


@dataclass
class Pursuit:
    """What is remembered of a subtask between its attempts.

    `ticket` is its leave of the role's breaker. In a round of review `previous` is the finding to mend by `feedback`.
    """

    role: RoleCard
    ticket: Ticket | None = None
    failures: int = 0
    fell_back: bool = False
    description_ref: str | None = None
    feedback: str | None = None
    previous: Finding | None = None


class Attempt:
    """Makes attempts for the subtasks of one run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    async def make(self, subtask_id: str, pursuit: Pursuit) -> Outcome:
        """The next attempt of a subtask, by one worker agent or by several candidates of which the best is kept."""
        state = self._context.state
        candidates = 1 if pursuit.role.team else state.board.subtask(subtask_id).candidates
        attempt = state.board[subtask_id].attempts + 1
        state.board.start(subtask_id, child_id(subtask_id, attempt, int(candidates > 1)))
        state.note("subtask_started", subtask_id, attempt=attempt, role=pursuit.role.name)
        self._context.show()
        if candidates == 1:
            return await self._one(subtask_id, pursuit, attempt, 0)
        running = [asyncio.create_task(self._one(subtask_id, pursuit, attempt, k)) for k in range(1, candidates + 1)]
        try:
            await asyncio.gather(*running)
            chosen = await select(self._context, subtask_id, [task.result() for task in running])
        except (asyncio.CancelledError, ActivityError) as error:
            if not cancelled(error):
                raise
            await workflow.wait(running, timeout=limits.CHILD_CLOSE_WAIT.total_seconds())
            had = [task.result() for task in running if task.done() and not task.cancelled()]
            return next((one for one in had if one.result.finding), _NOTHING)
        number = next(k for k, task in enumerate(running, 1) if task.result() is chosen)
        state.board[subtask_id].workflow_id = child_id(subtask_id, attempt, number)
        return chosen

    async def _one(self, subtask_id: str, pursuit: Pursuit, attempt: int, candidate: int) -> Outcome:
        """One worker agent to its end, through waits for the provider and refills of its share of the budget."""
        state, progress, pauses = self._context.state, Progress(), 0
        account = f"{subtask_id}.{candidate}"
        result = WorkerAgentResult()
        while True:
            try:
                grant = await self._grant(account)
            except asyncio.CancelledError:
                return Outcome(result.model_copy(update={"stopped": True}), stopped=True)
            concluding = grant is None
            if grant is None:
                if progress.turn == 0:
                    return Outcome(result, Problem(type=ErrorKind.BUDGET_EXHAUSTED, message=state.allowance.spent()))
                grant = state.allowance.ledger.last_grant(account)
            description = state.board.subtask(subtask_id).description
            if pursuit.role.team:
                request, nested = nested_input(
                    self._context, subtask_id, pursuit.role, self._brief(subtask_id, pursuit), grant
                )
                outcome = await run_nested(request, nested, attempt, description)
            else:
                input = self._input(subtask_id, pursuit, attempt)
                slice = {"grant": grant, "last_grant": concluding}
                outcome = await run_worker_agent(
                    input.model_copy(update={"candidate": candidate, "progress": progress, **slice}), description
                )
            result = outcome.result
            state.allowance.ledger.settle(account, result.usage)
            state.board.record(subtask_id, result.turns, result.usage)
            state.board.set_nested(subtask_id, result.subtasks, result.gaps)
            what = outcome.problem
            if outcome.stopped or what is None or what.type not in RESUMABLE or result.progress is None:
                return outcome
            if what.type in ACCOUNT and not state.has_finding:
                raise SupervisionError(run_kind(what.type), what.message)
            if what.type == ErrorKind.BUDGET_EXHAUSTED and concluding:
                return outcome
            progress = result.progress.told()
            if not await self._wait(subtask_id, pursuit.role.model, what, result.retry_after, pauses):
                return Outcome(result.model_copy(update={"stopped": True}), stopped=True)
            pauses += what.type == ErrorKind.CIRCUIT_OPEN

    async def _grant(self, account: str) -> Grant | None:
        """A slice of the budget; waits while others may give back some of theirs, None when nobody can any more."""
        allowance = self._context.state.allowance
        ledger = allowance.ledger
        while (grant := ledger.grant(account, allowance.shares(self._context.state.board))) is None:
            if not ledger.open_grants:
                return None
            await workflow.wait_condition(lambda: not ledger.exhausted or not ledger.open_grants)
        return grant

    def _brief(self, subtask_id: str, pursuit: Pursuit) -> SubtaskBrief:
        context, board = self._context, self._context.state.board
        wanted = set(board.subtask(subtask_id).attachments)
        return SubtaskBrief(
            goal_ref=context.setup.goal_ref,
            plan_ref=context.plan_ref,
            subtask_id=subtask_id,
            dependencies=as_refs(board.completed_for(subtask_id), board),
            missing=board.missing_for(subtask_id),
            attachments=[attachment for attachment in context.setup.attachments if attachment.name in wanted],
            description_ref=pursuit.description_ref,
            feedback=pursuit.feedback,
            previous_ref=pursuit.previous.text_ref if pursuit.previous else None,
        )

    def _input(self, subtask_id: str, pursuit: Pursuit, attempt: int) -> WorkerAgentInput:
        context, state, role = self._context, self._context.state, pursuit.role
        return WorkerAgentInput(
            run=context.run,
            team_ref=context.team_ref,
            role=role,
            subtask_id=subtask_id,
            attempt=attempt,
            brief=self._brief(subtask_id, pursuit),
            max_turns=min(state.request.max_turns, role.max_turns or limits.MAX_TURNS),
            tools_queue=pool_queue(role.pool) if role.pool else context.setup.tools_queue,
            model_queue=pool_queue(role.pool) if role.pool else MODEL_QUEUE,
            expires_at=state.started_at + limits.MAX_DEADLINE,
            timeout_seconds=state.board.subtask(subtask_id).timeout_seconds,
        )

    async def _wait(self, subtask_id: str, model: str, what: Problem, retry_after: float, pauses: int) -> bool:
        """Waits for what stopped an attempt to pass; False when the run was stopped meanwhile."""
        try:
            if what.type == ErrorKind.CIRCUIT_OPEN:
                await self._context.wait_for_provider(subtask_id, model, retry_after, pauses)
            elif what.type in ACCOUNT:
                await self._context.wait_for_resume(subtask_id, what.message)
        except (asyncio.CancelledError, SupervisionError):
            return False
        return True
