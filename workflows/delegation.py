"""Delegating the subtasks of a plan: each starts the moment its dependencies have ended and a slot is free."""

import asyncio
from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts import DependencyRef, RunRef, RunSetup, SubtaskBrief
    from supervision import limits
    from supervision.base import SupervisionError
    from supervision.result import Problem
    from supervision.run_state import RunState
    from workflows.children import Outcome, child_id, run_worker_agent
    from workflows.contracts import WorkerAgentInput
    from workflows.failures import FATAL, run_error

_NOT_RETRIED = ("Refused", *FATAL)


class Delegation:
    """Runs the board of a run to its end, or to the deadline. `changed` is called after every change."""

    def __init__(
        self, state: RunState, setup: RunSetup, run: RunRef, plan_ref: str, changed: Callable[[], None]
    ) -> None:
        self._state = state
        self._setup = setup
        self._run = run
        self._plan_ref = plan_ref
        self._changed = changed
        self._running: dict[str, asyncio.Task[None]] = {}

    async def execute(self) -> None:
        """Returns when every subtask has ended; SupervisionError when the provider refuses to serve at all."""
        left = self._state.deadline_at - self._state.reserve - workflow.now()
        timer = asyncio.create_task(workflow.sleep(max(left, limits.LEAST_CALL_TIME), summary="deadline"))
        try:
            await self._dispatch(timer)
        except (SupervisionError, asyncio.CancelledError) as error:
            timer.cancel()
            why = "the run was cancelled" if isinstance(error, asyncio.CancelledError) else str(error)
            await self._stop(Problem(type="Cancelled", message=why))
            raise
        if timer.done():
            self._state.note("deadline_reached")
            await self._stop(Problem(type="DeadlineExceeded", message="the run's deadline came first"))
        timer.cancel()

    async def _dispatch(self, timer: asyncio.Task[None]) -> None:
        board = self._state.board
        while not timer.done():
            for subtask_id in board.skip_hopeless():
                self._state.note("subtask_skipped", subtask_id)
            for subtask_id in board.ready(self._state.request.max_parallel - len(self._running)):
                self._running[subtask_id] = asyncio.create_task(self._pursue(subtask_id, self._begin(subtask_id)))
            self._changed()
            if not self._running:
                return
            await workflow.wait([*self._running.values(), timer], return_when=asyncio.FIRST_COMPLETED)
            for subtask_id, task in list(self._running.items()):
                if task.done():
                    del self._running[subtask_id]
                    task.result()

    async def _stop(self, why: Problem) -> None:
        """Stops what runs, keeps what it had, and closes what had not started."""
        for task in self._running.values():
            task.cancel()
        if self._running:
            await workflow.wait(self._running.values(), timeout=limits.CHILD_CLOSE_WAIT.total_seconds())
        for report in self._state.board.reports():
            if report.state in ("waiting", "running"):
                self._state.board.cancel(report.id, why)
        for report in self._state.board.reports():
            if report.state == "cancelled":
                report.error = why
        self._changed()

    def _begin(self, subtask_id: str) -> int:
        board = self._state.board
        workflow_id = child_id(subtask_id, board[subtask_id].attempts + 1)
        attempt = board.start(subtask_id, workflow_id)
        self._state.note("subtask_started", subtask_id, attempt=attempt, role=board[subtask_id].role)
        return attempt

    async def _pursue(self, subtask_id: str, attempt: int) -> None:
        """Attempts a subtask until it succeeds or has failed for good."""
        board, state = self._state.board, self._state
        while True:
            outcome = await run_worker_agent(self._input(subtask_id, attempt), board.subtask(subtask_id).description)
            board.record(subtask_id, outcome.result.turns, outcome.result.usage)
            if outcome.stopped:
                self._stopped(subtask_id, outcome)
                return
            if outcome.problem is None and outcome.result.finding is not None:
                board.complete(subtask_id, outcome.result.finding)
                state.note("subtask_completed", subtask_id, turns=outcome.result.turns)
                return
            what = outcome.problem or Problem(type="Cancelled", message="the worker agent was cancelled by itself")
            if what.type in FATAL and board.counts().completed == 0:
                board.fail(subtask_id, what)
                state.note("subtask_failed", subtask_id, error=what.type)
                raise SupervisionError(run_error(what.type), what.message)
            if what.type in _NOT_RETRIED or attempt >= limits.SUBTASK_ATTEMPTS:
                board.fail(subtask_id, what)
                state.note("subtask_failed", subtask_id, error=what.type, attempts=attempt)
                return
            state.note("subtask_retried", subtask_id, error=what.type, attempt=attempt)
            attempt = self._begin(subtask_id)
            self._changed()

    def _stopped(self, subtask_id: str, outcome: Outcome) -> None:
        """A stop that came too late finds the subtask completed; otherwise what it had is kept as partial."""
        board, result = self._state.board, outcome.result
        if result.finding is not None and not result.stopped:
            board.complete(subtask_id, result.finding)
            self._state.note("subtask_completed", subtask_id, turns=result.turns)
        else:
            board.cancel(subtask_id, Problem(type="Cancelled", message="it was stopped"), result.finding)
            self._state.note("subtask_cancelled", subtask_id, turns=result.turns)

    def _input(self, subtask_id: str, attempt: int) -> WorkerAgentInput:
        board, setup = self._state.board, self._setup
        subtask = board.subtask(subtask_id)
        role = setup.team.role(subtask.role)
        wanted = set(subtask.attachments)
        return WorkerAgentInput(
            run=self._run,
            team_ref=setup.team_ref,
            role=role,
            subtask_id=subtask_id,
            attempt=attempt,
            brief=SubtaskBrief(
                goal_ref=setup.goal_ref,
                plan_ref=self._plan_ref,
                subtask_id=subtask_id,
                dependencies=[
                    DependencyRef(subtask_id=report.id, role=report.role, text_ref=report.finding.text_ref)
                    for report in board.completed_for(subtask_id)
                    if report.finding
                ],
                missing=board.missing_for(subtask_id),
                attachments=[attachment for attachment in setup.attachments if attachment.name in wanted],
            ),
            max_turns=min(self._state.request.max_turns, role.max_turns or limits.MAX_TURNS),
            tools_queue=setup.tools_queue,
            expires_at=self._state.deadline_at,
            timeout_seconds=subtask.timeout_seconds,
        )
