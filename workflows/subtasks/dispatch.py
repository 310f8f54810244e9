"""Delegating the subtasks of a plan: each starts the moment its dependencies have ended and a slot is free."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from supervision import limits
    from supervision.contract.result import Problem
    from supervision.contract.team import RoleCard
    from supervision.errors import ErrorKind, SupervisionError
    from supervision.planning.capabilities import role_for
    from workflows.answer.drafts import Drafts
    from workflows.plan.replanning import Revisions
    from workflows.run_context import RunContext
    from workflows.subtasks.attempt import Pursuit
    from workflows.subtasks.retries import Pursuits


class Delegation:
    """Runs the board of a run to its end, or to the deadline; again after a step or a review."""

    def __init__(self, context: RunContext, drafts: Drafts, revisions: Revisions) -> None:
        self._context = context
        self._state = context.state
        self._pursue = Pursuits(context).pursue
        self._drafts = drafts
        self._revisions = revisions
        self._pursuits: dict[str, Pursuit] = {}
        self._running: dict[str, asyncio.Task[bool]] = {}
        self._held_until: datetime | None = None

    def reopen(self, subtask_id: str, feedback: str) -> None:
        """Has a completed subtask worked on again, with what a review says of its finding."""
        report = self._state.board[subtask_id]
        pursuit = self._pursuits[subtask_id]
        self._pursuits[subtask_id] = Pursuit(role=pursuit.role, feedback=feedback, previous=report.finding)
        self._state.board.reopen(subtask_id)

    async def execute(self) -> None:
        """Returns when every subtask has ended; SupervisionError when the provider serves nobody."""
        try:
            in_time = await self._dispatch()
        except (SupervisionError, asyncio.CancelledError) as error:
            why = "the run was cancelled" if isinstance(error, asyncio.CancelledError) else str(error)
            await self._stop(Problem(type=ErrorKind.CANCELLED, message=why))
            raise
        if not in_time:
            self._state.note("deadline_reached")
            await self._stop(Problem(type=ErrorKind.DEADLINE_EXCEEDED, message="the run's deadline came first"))

    async def _dispatch(self) -> bool:
        """Starts what may start and awaits what ends, until all has ended (True) or the deadline is there."""
        board, timers = self._state.board, Timers()
        while True:
            for subtask_id in board.skip_hopeless():
                self._state.note("subtask_skipped", subtask_id)
            self._held_until = None
            self._revisions.consider()
            for subtask_id in board.ready(self._state.request.max_parallel - len(self._running), self._admits):
                self._running[subtask_id] = asyncio.create_task(self._pursue(subtask_id, self._pursuits[subtask_id]))
            self._drafts.consider()
            self._context.show()
            if not self._running and not self._revisions.tasks() and self._held_until is None:
                timers.cancel()
                return True
            deadline = timers.at("subtasks stop", self._state.allowance.work_until)
            wakers: list[asyncio.Task[None]] = (
                [timers.at("breaker probe", self._held_until)] if self._held_until else []
            )
            bell = asyncio.ensure_future(self._context.bell.wait())
            await workflow.wait(
                [*self._running.values(), *self._drafts.tasks(), *self._revisions.tasks(), deadline, bell, *wakers],
                return_when=asyncio.FIRST_COMPLETED,
            )
            bell.cancel()
            self._context.bell.clear()
            for subtask_id, task in list(self._running.items()):
                if task.done():
                    del self._running[subtask_id]
                    task.result()
            if workflow.now() >= self._state.allowance.work_until:
                timers.cancel()
                return False

    def _admits(self, subtask_id: str) -> bool:
        """Whether a role can take the subtask now; leases the role's breaker for it.

        What lacks a dependency waits for a revision being made: that may replace it.
        """
        if self._revisions.tasks() and self._state.board.missing_for(subtask_id):
            return False
        pursuit = self._pursuits.get(subtask_id) or self._pursuit(subtask_id)
        role = pursuit.role
        if self._is_full(role):
            return False
        breaker = self._state.breaker(role.name)
        pursuit.ticket = breaker.admit()
        rests = [breaker.retry_at]
        fallback = None if pursuit.fell_back else self._context.roles.find(role.fallback)
        if pursuit.ticket is None and fallback is not None:
            other = self._state.breaker(fallback.name)
            if ticket := other.admit():
                pursuit.role, pursuit.fell_back, pursuit.ticket = fallback, True, ticket
            rests.append(other.retry_at)
        if pursuit.ticket is None:
            self._held_until = min((at for at in [self._held_until, *rests] if at is not None), default=None)
            return False
        self._pursuits[subtask_id] = pursuit
        self._state.board.begin(subtask_id, pursuit.role.name)
        return True

    def _pursuit(self, subtask_id: str) -> Pursuit:
        board, team = self._state.board, self._context.takers
        return Pursuit(role=team.role(role_for(board.subtask(subtask_id), team, board.in_flight(), self._is_free)))

    def _is_full(self, role: RoleCard) -> bool:
        load = self._state.board.in_flight().get(role.name, 0)
        return role.max_parallel is not None and load >= role.max_parallel

    def _is_free(self, role: RoleCard) -> bool:
        return not self._is_full(role) and self._state.breaker(role.name).admits()

    async def _stop(self, why: Problem) -> None:
        """Stops what runs, keeps what it had, and closes what had not started."""
        for task in self._running.values():
            task.cancel()
        await self._drafts.stop()
        await self._revisions.stop()
        if self._running:
            await workflow.wait(self._running.values(), timeout=limits.CHILD_CLOSE_WAIT.total_seconds())
        self._running.clear()
        self._state.board.close(why)
        self._context.show()


class Timers:
    """Timers by name, each set again only when its time changes."""

    def __init__(self) -> None:
        self._set: dict[str, tuple[datetime, asyncio.Task[None]]] = {}

    def at(self, name: str, when: datetime) -> asyncio.Task[None]:
        """A task that ends at `when`."""
        known = self._set.get(name)
        if known is None or known[0] != when:
            if known is not None:
                known[1].cancel()
            left = max(when - workflow.now(), limits.LEAST_CALL_TIME)
            known = self._set[name] = (
                when,
                asyncio.create_task(_sleep(left.total_seconds(), f"{name} at {when:%H:%M:%S} UTC")),
            )
        return known[1]

    def cancel(self) -> None:
        """Cancels all."""
        for _, task in self._set.values():
            task.cancel()


def _sleep(seconds: float, summary: str) -> Coroutine[Any, Any, None]:
    return workflow.sleep(seconds, summary=summary)
