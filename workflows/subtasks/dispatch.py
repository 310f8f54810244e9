"""The dispatch of a plan: each subtask starts once its dependencies have ended and a slot is free.

A failed subtask is retried with a better description, and finally by the fallback role.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.planning.capabilities import role_for

    from workflows.background import BackgroundTask, let_ready_tasks_finish, stop_all
    from workflows.calls.saved_work import EarlierFindings
    from workflows.subtasks.assignment import Assignment
    from workflows.subtasks.subtask_run import SubtaskRun
    from workflows.subtasks.work_context import WorkContext


_HISTORY_FULL = "the run's history is nearly as long as the server allows, so no more work begins"


class _Alarm:
    """A timer that is replaced only when its time changes.

    A new timer at each wait would cost two events of the history.
    """

    def __init__(self) -> None:
        self._when: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    def task_at(self, when: datetime, why: str) -> asyncio.Task[None]:
        """Returns a task that ends at `when`."""
        # One that is done though `when` is still to come (a clock was set back) would end every
        # wait at once.
        if self._task is None or self._when != when or self._task.done():
            self.cancel()
            left = max(when - workflow.now(), limits.LEAST_CALL_TIME)
            sleep = workflow.sleep(left.total_seconds(), summary=f"{why} at {when:%H:%M:%S} UTC")
            self._when, self._task = when, asyncio.create_task(sleep)
        return self._task

    def cancel(self) -> None:
        """Cancels the timer, if one is set."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def _history_is_full() -> bool:
    info = workflow.info()
    return (
        info.get_current_history_length() >= limits.HISTORY_EVENTS
        or info.get_current_history_size() >= limits.HISTORY_BYTES
    )


class Dispatch:
    """Executes the plan on a run's board, until all subtasks have ended or the deadline comes.

    It is executed again after each step or review.
    """

    def __init__(
        self,
        context: WorkContext,
        earlier: EarlierFindings,
        replanning: BackgroundTask,
        drafts: BackgroundTask,
    ) -> None:
        self._context = context
        self._earlier = earlier
        self._state = context.state
        self._changed = context.changed
        self._replanning = replanning
        self._drafts = drafts
        self._assignments: dict[str, Assignment] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._rest_left = limits.ROLE_REST_TOTAL
        self._alarm = _Alarm()

    def reopen(
        self, subtask_id: str, feedback: str, *, warm: bool = False, reviewed: bool = False
    ) -> None:
        """Has an ended subtask redone by its role, with feedback on its finding.

        With `warm` the role continues the conversation behind the finding, if that is possible.
        `reviewed` is True for a review's feedback; if a person asks, the new finding always
        replaces the old one.
        """
        before = self._assignment(subtask_id, self._state.board.in_flight())
        assignment = before.reopened(feedback, warm=warm, reviewed=reviewed)
        self._assignments[subtask_id] = assignment
        self._drafts.discard()
        is_warm = assignment.resume_from is not None
        self._state.trace.note("subtask_reopened", subtask_id, feedback=feedback, warm=is_warm)
        self._state.board.reopen(subtask_id)

    def _assignment(self, subtask_id: str, in_flight: Mapping[str, int]) -> Assignment:
        """Returns the subtask's assignment; a new one is to the plan's role, or the best one."""
        if subtask_id in self._assignments:
            return self._assignments[subtask_id]
        roles, subtask = self._context.plan.assignable_roles, self._state.board.subtask(subtask_id)
        name = role_for(
            subtask, roles, in_flight, lambda role: self._state.waits.breaker(role.name).admits()
        )
        return Assignment(self._context, subtask_id, roles.role(name))

    async def execute(self) -> None:
        """Returns when every subtask has ended.

        Raises SupervisionError if the provider refuses all work.
        """
        try:
            in_time = await self._run_board()
            self._hold_clock_for_people(False)
        except (SupervisionError, asyncio.CancelledError) as error:
            self._hold_clock_for_people(False)
            is_cancelled = isinstance(error, asyncio.CancelledError)
            why = "the run was cancelled" if is_cancelled else str(error)
            await self._stop(Problem(type=ErrorKind.CANCELLED, message=why))
            raise
        self._alarm.cancel()
        self._state.steering.forget_retries()  # asked for when no time was left
        why = self._state.time_and_budget.stopped_because or "the run's deadline came first"
        why_stopped = Problem(type=ErrorKind.DEADLINE_EXCEEDED, message=why)
        if in_time:
            # A wait that the deadline ended stops its subtask without a reason.
            self._state.board.close(why_stopped)
        else:
            self._state.trace.note("deadline_reached")
            await self._stop(why_stopped)

    def _follow_people(self) -> None:
        """Redoes and skips subtasks, as people asked."""
        steering, board = self._state.steering, self._state.board
        while steering.retries and self._state.time_and_budget.time_left:
            subtask_id, instruction = steering.next_retry()
            assignment = self._assignments.get(subtask_id)
            if board[subtask_id].state == "waiting" and assignment is not None:
                # A review has reopened it meanwhile.
                assignment.add_feedback(instruction)
            else:
                self.reopen(subtask_id, instruction, warm=bool(instruction))

        for subtask_id in list(steering.skips):
            if board.subtask(subtask_id).for_each and self._replanning.running:
                continue  # it may be getting its items
            why = steering.take_skip(subtask_id)
            for part in board.open_parts(subtask_id):
                assignment, task = self._assignments.get(part), self._running.get(part)
                if assignment is not None and task is not None and not task.done():
                    assignment.mark_skipped(why)
                    task.cancel()
                else:
                    board.skip(part, why, assignment.so_far if assignment else None)

    async def _run_board(self) -> bool:
        """Starts subtasks and awaits their ends.

        Returns True when all have ended, False at the deadline. A history that is nearly full is a
        deadline, too: the server terminates a run whose history is too long.
        """
        state = self._state
        while state.time_and_budget.time_left or self._is_complete():
            if self._is_stopped_by_its_history():
                return False

            self._follow_people()
            self._earlier.complete_ready()
            for subtask_id in state.board.skip_blocked():
                state.trace.note("subtask_skipped", subtask_id)
            probe_at = self._begin_work()
            self._context.issue_soon()
            is_idle = not (self._running or self._replanning.running or state.steering.paused)
            if is_idle:
                if probe_at is None:
                    return True
                # Only roles with an open breaker could go on, and only for so long.
                if self._rest_left <= timedelta():
                    self._give_up_resting()
                    continue
                probe_at = min(probe_at, workflow.now() + self._rest_left)

            # Whatever happens while this waits (a plan adopted, a subtask held back, limits
            # changed) ends one of the wakers, and the loop looks at the whole board again: nothing
            # is carried over from before the wait.
            waits_since = workflow.now()
            self._hold_clock_for_people(self._only_people_can_help(probe_at))
            await self._await_change(probe_at)
            if is_idle:
                self._rest_left -= workflow.now() - waits_since
            self._collect_ended_tasks()
        return False

    def _is_stopped_by_its_history(self) -> bool:
        """True if the history is full and work is left. No more work begins from then on."""
        if not _history_is_full():
            return False
        self._state.time_and_budget.stop_work(_HISTORY_FULL)
        return not self._is_complete()

    def _begin_work(self) -> datetime | None:
        """Begins all work that may begin; none in a pause.

        Returns the time at which an open breaker admits an attempt.
        """
        if self._state.steering.paused:
            return None

        # Before subtasks start: one that lacks a dependency waits for the revision that may replace
        # it.
        self._replanning.begin_if_due()
        probe_at = self._start_ready()
        self._drafts.begin_if_due()
        return probe_at

    def _only_people_can_help(self, probe_at: datetime | None) -> bool:
        """True if everything that could continue waits for a person's decision.

        Then the run's clock stands still.
        """
        is_planning = self._replanning.running and self._state.proposals.plan is None
        if self._drafts.running or is_planning or probe_at is not None:
            return False
        return self._state.only_people_can_help

    def _hold_clock_for_people(self, wanted: bool) -> None:
        """Stops the clock while only people can help, and releases it afterwards.

        A nested run has its root's clock: it reports to the run above that it waits.
        """
        state = self._state
        has_changed = wanted != state.waits_for_people
        state.set_waits_for_people(wanted)
        if self._context.terms.nested is not None:
            if has_changed:
                self._context.issue_soon()
        elif state.time_and_budget.hold("people", wanted):
            self._context.children.links.mark_news()

    def _give_up_resting(self) -> None:
        """Fails the subtasks whose roles are resting, because the run was idle for too long."""
        board = self._state.board
        for subtask_id in list(board.ready()):
            assignment = self._assignment(subtask_id, board.in_flight())
            role = assignment.role.name
            why = f"the role '{role}' failed too often in a row, and nothing else was left to do"
            board.begin(subtask_id, role)
            assignment.fail(Problem(type=ErrorKind.NO_CAPABLE_WORKER, message=why))

    def _is_complete(self) -> bool:
        counts = self._state.board.counts()
        return not (self._running or self._replanning.running or counts.waiting or counts.running)

    def _start_ready(self) -> datetime | None:
        """Starts the ready subtasks for which there is a slot and a role.

        Returns the time at which an open breaker admits an attempt.
        """
        state, board = self._state, self._state.board
        if state.time_and_budget.agents_waiting:
            return None  # others could not be paid now
        if state.first_finding.refused and not state.first_finding.exists:
            return None  # others would be refused, too

        # Once: while a role rests, each of its subtasks is looked at every time.
        in_flight = board.in_flight()
        probes: list[datetime] = []
        for subtask_id in board.ready():
            if state.slots.full:
                break
            if self._replanning.running and board.missing_for(subtask_id):
                continue
            assignment = self._assignment(subtask_id, in_flight)
            if self._running and state.models.is_away(assignment.role.models):
                continue  # those that run wait for it already, and one of them tries it first
            if assignment.take_role():
                self._start(assignment)
                in_flight[assignment.role.name] += 1
                continue
            probe_at = assignment.next_probe_at()
            if probe_at is not None:
                probes.append(probe_at)
        return min(probes, default=None)

    def _start(self, assignment: Assignment) -> None:
        """Starts the work on a subtask in a task of its own."""
        subtask_id = assignment.subtask_id
        self._assignments[subtask_id] = assignment
        # On the board at once, not when its task first runs: the next role is chosen by what is in
        # flight.
        self._state.board.begin(subtask_id, assignment.role.name)
        task = asyncio.create_task(SubtaskRun(assignment).run())
        self._running[subtask_id] = task
        # Awaiting the tasks themselves would cost more on every wake-up.
        task.add_done_callback(lambda task: self._changed.set())

    async def _await_change(self, probe_at: datetime | None) -> None:
        """Returns when something may begin: a task has ended, a time has come, or `changed` is set.

        `changed` is set by:

        - updates, the signal `decide` and a pause above (`UpdateIntake.notify_work`), and resets;
        - reports of nested runs (`Handlers.hear_nested_run`);
        - waits for people, as they begin and end (`Waiting`);
        - models and the store, as they become unavailable or available (`ServingModels`,
          `StoreWait`);
        - slots and budget, when work waits for them or returns them (`SlotWaits`, `AgentRun`);
        - each task of a subtask, at its end.
        """
        changed = asyncio.ensure_future(self._changed.wait())
        wakers: list[asyncio.Future[Any]] = [
            *self._drafts.tasks(),
            *self._replanning.tasks(),
            changed,
        ]
        budget = self._state.time_and_budget
        times: list[tuple[datetime, str]] = []
        if probe_at is not None:
            times.append((probe_at, "breaker probe"))
        if not budget.held:
            times.append((budget.work_until, "subtasks stop"))
        if times:
            wakers.append(self._alarm.task_at(*min(times)))
        else:
            self._alarm.cancel()
        await workflow.wait(wakers, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        self._changed.clear()  # the loop looks at the whole run now

    def _collect_ended_tasks(self) -> None:
        """Removes the tasks of subtasks that ended or were put back. Raises the error of a task."""
        for subtask_id, task in [*self._running.items()]:
            if task.done():
                del self._running[subtask_id]
                task.result()

    async def _stop(self, why: Problem) -> None:
        """Stops running subtasks, keeps their partial findings, and closes the others."""
        stopping = asyncio.create_task(self._stop_running())
        cancelled = False
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            # Once: those that are stopping hand in what they have all the same.
            cancelled = True
            await stopping
        for assignment in self._assignments.values():
            assignment.stop()  # one that waits for its next attempt keeps what it had, too
        self._running.clear()
        self._state.board.close(why)
        self._context.issue_soon()
        if cancelled:
            raise asyncio.CancelledError

    async def _stop_running(self) -> None:
        """Returns when everything that runs has stopped, or the time for that is over.

        Each subtask cancels its child and books the child's usage. If it is cancelled again, it
        ends without waiting for the child. A lower level waits for less time, so that its own
        result still arrives.
        """
        running = [task for task in self._running.values() if not task.done()]
        for task in running:
            task.cancel()
        await self._drafts.stop()
        await self._replanning.stop()
        if running:
            left = self._state.time_and_budget.closing_time / self._context.terms.depth
            await workflow.wait(running, timeout=left.total_seconds())
            await let_ready_tasks_finish()  # what a child consumed may be known since just now
            await stop_all(running)
