"""The workflow of a run: it prepares the work on a goal, and closes the books at the end."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import RunRef, RunSetup, SetupInput
    from activities.contracts.store_contracts import StoreReport
    from activities.run.orphans import Orphans, OrphansInput
    from activities.run.run_activities import RunActivities
    from pydantic import ValidationError
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError, run_kind
    from temporal_supervisor.supervision.contract.progress import Phase
    from temporal_supervisor.supervision.contract.request import RunRequest, parse_request
    from temporal_supervisor.supervision.contract.result import Problem, RunResult
    from temporal_supervisor.supervision.results.payload_fit import fit
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.status_and_result import result_of

    from workflows.background import in_background, stop_all
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.run_notices import Notices
    from workflows.calls.store_wait import StoreWait
    from workflows.children.child_contracts import BareInput, NestedInput, PartInput
    from workflows.children.links import nested_result
    from workflows.children.surplus_inputs import take_input
    from workflows.goal_run import GoalRun
    from workflows.messages.handlers import Handlers
    from workflows.messages.update_intake import UpdateIntake
    from workflows.outbox import Outbox
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms, log_event

_T = TypeVar("_T")

# The result of a nested run goes into two histories: the whole of it is in the store.
_NESTED_RESULT_BYTES = 16 * 1024


@workflow.defn
class SupervisorWorkflow(Handlers):
    """Runs a goal. Every expected failure ends the run with a typed error and its findings."""

    @workflow.init
    def __init__(self, request: RunRequest | None = None, *surplus: object) -> None:
        """Reads the input. An error in it is left to `run`: raised here it would block the run."""
        self._nested, surplus = take_input(NestedInput, surplus)
        bare, surplus = take_input(BareInput, surplus)
        self._is_bare = bare is not None
        self._part, surplus = take_input(PartInput, surplus)
        self._changed = asyncio.Event()  # wakes the dispatch
        self._reset = asyncio.Event()  # the run was reset
        self._hurry = asyncio.Event()  # the run was cancelled while it closes
        self._goal: GoalRun | None = None  # once it is prepared
        self._orphans: asyncio.Task[None] | None = None
        self._invalid: SupervisionError | None = None
        try:
            self._begin(parse_request(request, surplus))
        except SupervisionError as error:
            self._invalid = error
        if isinstance(request, dict):  # the SDK holds the arguments for as long as the run is open
            request.clear()

    def _begin(self, request: RunRequest) -> None:
        """Creates the state of the run, and the objects that change and publish it."""
        nested = self._nested
        self._state = state = self._new_state(request)
        run_id = nested.run.run_id if nested else workflow.info().workflow_id
        state.trace.set_listener(partial(log_event, run_id))
        state.models.set_listener(self._changed.set)
        self._outbox = Outbox(state, is_nested=nested is not None)
        self._updates = UpdateIntake(state, nested, self._wake_all)
        own_run, issue_soon = self._own_run(), self._outbox.issue_soon
        self._store_wait = StoreWait(own_run, state, self._hold_clock, issue_soon)
        # Only a reset gives a run another seed.
        workflow.register_random_seed_callback(lambda seed: self._reset.set())

    def _new_state(self, request: RunRequest) -> RunState:
        nested = self._nested
        grant = nested.grant if nested else None
        state = RunState(request, workflow.now, workflow.info().start_time, grant)
        if nested is not None:
            labels = nested.brief.labels
            state.begin_nested(labels, nested.instructions, has_finding=nested.has_finding)
        return state

    @workflow.run
    async def run(self, request: RunRequest | None = None, *surplus: object) -> RunResult:
        """Returns the answer to the goal, or fails with a typed error.

        The signature takes any input as plain JSON, so that a bad one ends as `InvalidRequest`
        instead of blocking.
        """
        if self._invalid is not None:
            kind = self._invalid.kind
            raise ApplicationError(self._invalid.message, type=kind, non_retryable=True)
        restarts = in_background(self._restart_after_resets())
        try:
            self._goal = await self._prepare()
            await self._goal.run()
            # The record in the store is of a completed run: a cancellation from here on changes
            # nothing.
            return await self._finish_closing(self._close("done"))
        except (SupervisionError, CallFailed) as error:
            problem = _run_problem(error)
            if self._is_nested_with_findings:
                self._answer_with_findings(problem)
                return await self._finish_closing(self._close("done"))
            if self._nested is None and self._state.may_complete_without_answer(problem):
                self._state.complete_without_answer(problem)
                return await self._finish_closing(self._close("done", problem))
            raise await self._finish_closing(self._close_failed(problem)) from error
        except asyncio.CancelledError:
            result = await self._close_cancelled()
            if self._nested is not None:
                return result  # what it has, for the supervisor above
            self._outbox.publish_partial(result)
            raise
        finally:
            restarts.cancel()

    @workflow.signal
    def store_away(self, report: object = None, *surplus: object) -> None:
        """A call of this run can't use the store. A report that does not fit is ignored."""
        try:
            valid = StoreReport.model_validate(report)
        except ValidationError:
            return
        if self._invalid is None:
            self._store_wait.take_report(valid)

    def _own_run(self) -> RunRef:
        """Returns the reference of the root, as the first activity gets it."""
        if self._nested:
            return self._nested.run
        info = workflow.info()
        date = info.workflow_start_time.date().isoformat()
        return RunRef(run_id=info.workflow_id, first_run_id=info.first_execution_run_id, date=date)

    def _wake_all(self) -> None:
        """Wakes all work here and below to see a change, and publishes it."""
        self._outbox.children.mark_news()
        self._changed.set()
        self._outbox.issue_soon()

    def _hold_clock(self, why: str, wanted: bool) -> None:
        """Stops the run's clock for a reason, or releases it; nested runs follow."""
        if self._state.time_and_budget.hold(why, wanted):
            self._outbox.children.mark_news()
        self._changed.set()

    async def _restart_after_resets(self) -> None:
        """Notices each reset at its place in history, where the seed of random numbers changes.

        A reset to the very first step is noticed by `prepare_run`.
        """
        while True:
            await self._reset.wait()
            self._reset.clear()
            self._state.restart()
            self._leave_no_orphans()
            self._wake_all()  # the deadline has begun again

    def _leave_no_orphans(self) -> None:
        """Begins to end the children that only the execution before a reset knew."""
        if self._orphans is None or self._orphans.done():
            self._orphans = in_background(self._end_orphans())

    async def _end_orphans(self) -> None:
        # The reset may have come before the setup, which tells where the store is.
        await workflow.wait_condition(lambda: self._goal is not None)
        assert self._goal is not None
        orphans = OrphansInput(run=self._goal.terms.run)
        try:
            await activity_calls.store_call(
                Orphans.end_orphans,
                limits.PUBLISH_TIMEOUT,
                "end what worked before the reset",
                orphans,
                patience=limits.FILES_TIMEOUT,
            )
        except CallFailed as failed:
            why = f"worker agents of before the reset may still be at work: {failed}"
            self._state.warn(why)

    async def _prepare(self) -> GoalRun:
        """Returns the work on the goal, on the terms that the run's first activity fixed."""
        state, is_root = self._state, self._nested is None
        own_run = self._own_run()
        setup = await self._run_setup(own_run)
        state.take_setup(
            # A nested run has its limits from its grant.
            setup.ceilings if is_root else None,
            setup.team.name,
            advice=setup.team.on_failure,
            warnings=setup.warnings,
            notice=setup.model_notice,
            extracts=setup.extracts,
        )
        if setup.was_reset:
            state.restart()
            self._leave_no_orphans()

        fixed = setup.model_dump(include={"store_id", "grant_ref", "files_ref"})
        run = own_run.model_copy(update=fixed)
        # The lists of runs are lists of roots.
        search_attributes = setup.search_attributes if is_root else []
        notices = Notices(run, state, is_root=is_root) if setup.notices else None
        self._outbox.begin(search_attributes, notices)

        terms = RunTerms(run, setup, self._nested, self._is_bare, self._part)
        may_nest = terms.depth < state.request.max_depth
        plan = PlanInForce(state, setup.team, setup.team_ref, may_nest=may_nest)
        attachments = [attachment.name for attachment in setup.attachments]
        self._updates.check_plans_against(plan, attachments)
        return GoalRun(terms, state, plan, self._outbox, self._changed)

    async def _run_setup(self, run: RunRef) -> RunSetup:
        """Has the goal, its data and its team stored. Raises CallFailed."""
        request = self._state.request
        call = SetupInput(
            run=run,
            request=request,
            brief=self._nested.brief if self._nested else None,
            own_first_run_id=workflow.info().first_execution_run_id,
        )
        time = limits.FILES_TIMEOUT if request.attachments else limits.SETUP_TIMEOUT
        prepare = RunActivities.prepare_run
        return await activity_calls.store_call(prepare, time, "prepare the run", call)

    @property
    def _is_nested_with_findings(self) -> bool:
        """True if this is a nested run with findings, which the run above should get."""
        return self._nested is not None and bool(self._state.board.usable())

    def _answer_with_findings(self, why: Problem) -> None:
        """Makes the findings the answer of a run that ends early."""
        self._state.board.close(why)
        self._state.answer.replace_by_findings(why.message)

    async def _close_failed(self, problem: Problem) -> ApplicationError:
        """Closes a failed run. Returns its error, with the result."""
        state = self._state
        state.fail(problem)
        message = f"{state.advice} ({problem.message})" if state.advice else problem.message
        result = await self._close("failed", problem)
        return ApplicationError(message, result, type=problem.type, non_retryable=True)

    async def _close_cancelled(self) -> RunResult:
        """Closes a cancelled run. Returns its result.

        Temporal cancels a run only once, so the work here is not cancelled again. It does not wait
        for an unavailable store.
        """
        why = Problem(type=ErrorKind.CANCELLED, message="the run was cancelled")
        if self._is_nested_with_findings:
            self._answer_with_findings(why)
        # Less time on each lower level, so that its result still reaches the level above.
        depth = self._nested.depth if self._nested else 1
        return await self._close("cancelled", why, limits.CLOSING_PATIENCE / depth)

    async def _close(
        self, phase: Phase, why: Problem | None = None, patience: timedelta | None = None
    ) -> RunResult:
        """Closes the run in a phase. Returns the result once all of it is stored.

        With `patience` the store may be unavailable for that long at most.
        """
        state = self._state
        if self._goal is not None:
            await self._goal.stop_drafts()  # first: the result has what a stopped draft cost
        state.finish()
        if why is not None:
            state.board.close(why)
        state.enter(phase)
        self._outbox.issue_soon()
        result = await self._publish_result(patience)
        # What is still under way ends before the outbox issues the run's last commands.
        await self._end_orphan_search(patience)
        await self._store_wait.end()
        await self._outbox.close()
        # An update that was accepted gets its reply before the run is closed.
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _publish_result(self, patience: timedelta | None) -> RunResult:
        """Has the result stored, and returns it as it fits into a payload."""
        if self._goal is None:  # the run ended before it was prepared: it has no store
            return self._fitted(result_of(self._state))
        stored = await self._goal.stored_result(patience, self._hurry)
        return self._fitted(stored.result, stored.room, stored.record_ref)

    def _fitted(
        self, result: RunResult, room: int = limits.PAYLOAD_AIM_BYTES, record_ref: str = ""
    ) -> RunResult:
        """Returns a result as it fits into a payload; a nested one is for the run above."""
        if self._nested is None:
            return fit(result, room)
        fitted = fit(result, _NESTED_RESULT_BYTES)
        return nested_result(self._state, result, fitted, record_ref)

    async def _end_orphan_search(self, patience: timedelta | None) -> None:
        """Returns when the children of before a reset have ended, or after the `patience`."""
        if self._orphans is None:
            return
        if self._goal is not None:  # else the run ended before it could know of any
            left = patience.total_seconds() if patience else None
            await workflow.wait([self._orphans], timeout=left)
        await stop_all([self._orphans])

    async def _finish_closing(self, closing: Coroutine[Any, Any, _T]) -> _T:
        """Returns the result of closing a run, which a cancellation no longer stops.

        After a cancellation the run only stops waiting for an unavailable store.
        """
        task = asyncio.create_task(closing)
        while not task.done():
            try:
                # A cancellation ends this await, and leaves the task alone.
                await asyncio.shield(task)
            except asyncio.CancelledError:
                self._hurry.set()
        return task.result()


def _run_problem(error: SupervisionError | CallFailed) -> Problem:
    """Returns the problem that a run ends with."""
    if isinstance(error, SupervisionError):
        return Problem(type=error.kind, message=error.message)
    return error.problem.model_copy(update={"type": run_kind(error.problem.type)})
