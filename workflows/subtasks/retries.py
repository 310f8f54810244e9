"""Pursuing a subtask over its attempts: better described after each failure, by the fallback role in the end."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from supervision import limits
    from supervision.contract.result import Problem
    from supervision.errors import FATAL, ErrorKind, SupervisionError, run_kind
    from workflows.calls import activity_calls
    from workflows.calls.judge_calls import refine
    from workflows.child_contracts import WorkerAgentResult
    from workflows.failures import cancelled
    from workflows.run_context import RunContext
    from workflows.subtasks.attempt import Attempt, Pursuit


class Pursuits:
    """Pursues the subtasks of one run."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._attempt = Attempt(context)

    async def pursue(self, subtask_id: str, pursuit: Pursuit) -> bool:
        """Works on a subtask until it has ended, True; or until its role's breaker holds it back, False.

        Raises SupervisionError when the provider serves nobody, CancelledError never: a stopped subtask has ended.
        """
        try:
            return await self._pursue(subtask_id, pursuit)
        except (ActivityError, asyncio.CancelledError) as error:
            if not cancelled(error):
                raise
            self._give_back(pursuit)
            self._stopped(subtask_id, pursuit, WorkerAgentResult(stopped=True))
            return True

    async def _pursue(self, subtask_id: str, pursuit: Pursuit) -> bool:
        board, state = self._context.state.board, self._context.state
        await self._divert(subtask_id, pursuit)
        while True:
            board.begin(subtask_id, pursuit.role.name)
            outcome = await self._attempt.make(subtask_id, pursuit)
            what = outcome.problem
            if outcome.stopped:
                self._give_back(pursuit)
                self._stopped(subtask_id, pursuit, outcome.result)
                return True
            if what is None and outcome.result.finding is not None:
                self._settle(pursuit, succeeded=True)
                board.complete(subtask_id, outcome.result.finding)
                state.mended(subtask_id)
                state.note("subtask_completed", subtask_id, turns=outcome.result.turns)
                return True
            what = what or Problem(type=ErrorKind.CANCELLED, message="the worker agent was cancelled by itself")
            if what.type in (*FATAL, ErrorKind.BUDGET_EXHAUSTED, ErrorKind.CANCELLED):
                self._give_back(pursuit)
                return self._failed(subtask_id, pursuit, what)
            self._settle(pursuit, succeeded=False)
            pursuit.failures += 1
            if not await self._prepare_retry(subtask_id, pursuit, what):
                return self._failed(subtask_id, pursuit, what)
            if pursuit.ticket is None:
                board.hold(subtask_id)
                state.note("subtask_held", subtask_id, role=pursuit.role.name)
                return False

    async def _divert(self, subtask_id: str, pursuit: Pursuit) -> None:
        """Gives the subtask to the role's backup, unless that rests, while work waits too long for the role's pool."""
        role, backup = pursuit.role, self._context.roles.find(pursuit.role.backup)
        if role.pool is None or backup is None:
            return
        waited = await activity_calls.pool_backlog(role.pool)
        ticket = self._context.state.breaker(backup.name).admit() if waited > role.backlog_seconds else None
        if ticket is not None:
            self._give_back(pursuit)
            pursuit.role, pursuit.ticket = backup, ticket
            self._context.state.note(
                "subtask_diverted", subtask_id, role=backup.name, pool=role.pool, waited_seconds=round(waited, 1)
            )

    async def _prepare_retry(self, subtask_id: str, pursuit: Pursuit, what: Problem) -> bool:
        """Readies the next attempt: same role better described, or the fallback role. False when there is none.

        `pursuit.ticket` is None afterwards when the role's breaker admits nobody now.
        """
        state = self._context.state
        fallback = self._context.roles.find(pursuit.role.fallback)
        last = pursuit.failures >= limits.SUBTASK_ATTEMPTS
        if last and (pursuit.fell_back or fallback is None):
            return False
        if not last or what.type == ErrorKind.REFUSED:
            better = await refine(self._context, subtask_id, pursuit.role.name, pursuit.description_ref, what)
            if better is None and what.type == ErrorKind.REFUSED:
                return False
            pursuit.description_ref = better or pursuit.description_ref
        if last and fallback is not None:
            pursuit.role, pursuit.fell_back = fallback, True
        state.note("subtask_retried", subtask_id, error=what.type, role=pursuit.role.name)
        pursuit.ticket = state.breaker(pursuit.role.name).admit()
        if pursuit.ticket is None and fallback is not None and not pursuit.fell_back:
            pursuit.role, pursuit.fell_back = fallback, True
            pursuit.ticket = state.breaker(fallback.name).admit()
        return True

    def _settle(self, pursuit: Pursuit, succeeded: bool) -> None:
        if pursuit.ticket is not None:
            breaker = self._context.state.breaker(pursuit.role.name)
            (breaker.succeeded if succeeded else breaker.failed)(pursuit.ticket)
            pursuit.ticket = None

    def _give_back(self, pursuit: Pursuit) -> None:
        if pursuit.ticket is not None:
            self._context.state.breaker(pursuit.role.name).released(pursuit.ticket)
            pursuit.ticket = None

    def _failed(self, subtask_id: str, pursuit: Pursuit, what: Problem) -> bool:
        state = self._context.state
        if pursuit.previous is not None:
            state.board.keep(subtask_id)
            state.open_point(subtask_id, f"it could not be mended ({what.type}): {pursuit.feedback}")
            return True
        state.board.fail(subtask_id, what)
        state.note("subtask_failed", subtask_id, error=what.type, attempts=state.board[subtask_id].attempts)
        if what.type in FATAL and not state.has_finding:
            raise SupervisionError(run_kind(what.type), what.message)
        return True

    def _stopped(self, subtask_id: str, pursuit: Pursuit, result: WorkerAgentResult) -> None:
        """A stop that came too late finds the subtask completed; otherwise what it had is kept as partial."""
        state = self._context.state
        if result.finding is not None and not result.stopped:
            state.board.complete(subtask_id, result.finding)
            state.mended(subtask_id)
            state.note("subtask_completed", subtask_id, turns=result.turns)
        elif pursuit.previous is not None:
            state.board.keep(subtask_id)
        else:
            state.board.cancel(subtask_id, Problem(type=ErrorKind.CANCELLED, message="it was stopped"), result.finding)
            state.note("subtask_cancelled", subtask_id, turns=result.turns)
