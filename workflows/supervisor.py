"""One goal, from the request to the answer: plan, delegate on readiness, review, write one honest answer."""

import asyncio
import contextlib
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from activities.contracts.run_contracts import (
        RunRef,
        SetupInput,
    )
    from activities.contracts.store_contracts import StoreReport
    from activities.run.orphans import Orphans, OrphansInput
    from activities.run.run_activities import RunActivities
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError, run_kind
    from temporal_supervisor.supervision.contract.progress import Phase
    from temporal_supervisor.supervision.contract.request import RunRequest, parse_request
    from temporal_supervisor.supervision.contract.result import Problem, RunResult
    from temporal_supervisor.supervision.contract.strategy import STRATEGIES, Strategy, StrategyName
    from temporal_supervisor.supervision.results.payload_fit import fit
    from temporal_supervisor.supervision.run.run_state import RunState
    from temporal_supervisor.supervision.run.run_views import result_of
    from workflows.answer.publish import PUBLISH_BYTES, in_time, stored_result
    from workflows.answer.review_rounds import review
    from workflows.answer.write_answer import Drafts, sole_finding, tabulate, write_answer
    from workflows.background import in_background, let_ready_tasks_finish, stop_all
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.run_notices import Notices
    from workflows.calls.store_wait import StoreWait
    from workflows.children.child_contracts import BareInput, NestedInput, PartInput
    from workflows.children.links import nested_result
    from workflows.children.surplus_inputs import take_input
    from workflows.handlers import Handlers
    from workflows.outbox import Outbox
    from workflows.people import Words
    from workflows.plan.make_plan import Replanning, make_plan, next_step
    from workflows.run_context import RunContext, log_event
    from workflows.subtasks.dispatch import Dispatch

_T = TypeVar("_T")

_NESTED_RESULT_BYTES = 16 * 1024  # what a nested run returns goes into two histories: its whole result is in the store


@workflow.defn
class SupervisorWorkflow(Handlers):
    """Runs a goal. Every anticipated failure closes the run with a typed error and the partial result in it."""

    @workflow.init
    def __init__(self, request: RunRequest | None = None, *surplus: object) -> None:
        """Reads the input. What is wrong with it is kept for `run`: an error raised here would block the run."""
        self._nested, surplus = take_input(NestedInput, surplus)
        bare, surplus = take_input(BareInput, surplus)
        self._is_bare = bare is not None
        self._part, surplus = take_input(PartInput, surplus)
        self._changed = asyncio.Event()  # wakes the dispatch
        self._reset = asyncio.Event()  # the run was reset
        self._hurry = asyncio.Event()  # the run was cancelled while it closes
        self._context: RunContext | None = None
        self._drafts: Drafts | None = None
        self._orphans: asyncio.Task[None] | None = None
        self._state: RunState | SupervisionError
        try:
            self._state = state = self._new_state(parse_request(request, surplus))
            run_id = self._nested.run.run_id if self._nested else workflow.info().workflow_id
            state.trace.show_to(partial(log_event, run_id))
            state.models.wake(self._changed.set)
            self._outbox = Outbox(state, is_nested=self._nested is not None)
            self._store_wait = StoreWait(self._own_run(), state, self._hold_clock, self._outbox.show)
            workflow.register_random_seed_callback(lambda seed: self._reset.set())
        except SupervisionError as error:
            self._state = error
        if isinstance(request, dict):  # the SDK holds the arguments for as long as the run is open
            request.clear()

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

        The signature takes any input as plain JSON, so that a bad one ends as `InvalidRequest` instead of blocking.
        """
        state = self._state
        if isinstance(state, SupervisionError):
            raise ApplicationError(state.message, type=state.kind, non_retryable=True)
        restarts = in_background(self._restart_after_resets(state))
        try:
            return await self._supervise(state)
        except (SupervisionError, CallFailed) as error:
            problem = _run_problem(error)
            if self._keep_findings(state, problem):
                return await self._to_its_end(self._closed(state, "done"))
            if self._nested is None and state.says_that_there_is_none(problem):
                return await self._to_its_end(self._closed(state, "done", problem))
            raise await self._to_its_end(self._failed(state, problem)) from error
        except asyncio.CancelledError:
            # Temporal asks for a cancellation once: what closes the books below is not cancelled again.
            why = Problem(type=ErrorKind.CANCELLED, message="the run was cancelled")
            self._keep_findings(state, why)
            # A store that is away is not waited for: a cancelled run closes without it.
            patience = limits.CLOSING_PATIENCE / (self._nested.depth if self._nested else 1)
            result = await self._closed(state, "cancelled", why, patience)
            if self._nested is not None:
                return result  # what it has, for the supervisor above
            self._outbox.keep_partial(result)
            raise
        finally:
            restarts.cancel()

    @workflow.signal
    def store_away(self, report: object = None, *surplus: object) -> None:
        """The word of a call of this run that it can't use the store. What does not fit is ignored."""
        try:
            valid = StoreReport.model_validate(report)
        except ValidationError:
            return
        if isinstance(self._state, RunState):
            self._store_wait.take(valid)

    def _own_run(self) -> RunRef:
        """Returns the run as its first activity gets it: the root's."""
        if self._nested:
            return self._nested.run
        info = workflow.info()
        date = info.workflow_start_time.date().isoformat()
        return RunRef(run_id=info.workflow_id, first_run_id=info.first_execution_run_id, date=date)

    def _hold_clock(self, why: str, wanted: bool) -> None:
        """Holds the run's clock for a reason, or no longer for that one; nested runs and the dispatch follow."""
        if self._run_state().time_and_budget.hold(why, wanted):
            self._outbox.children.tell()
        self._changed.set()

    async def _restart_after_resets(self, state: RunState) -> None:
        """Notices each reset at its place in history: only there the seed of random numbers changes.

        A reset to the very first step is noticed by `prepare_run`.
        """
        while True:
            await self._reset.wait()
            self._reset.clear()
            state.restart()
            self._leave_no_orphans()
            self._outbox.children.tell()  # the deadline has begun again
            self._changed.set()
            self._outbox.show()

    def _leave_no_orphans(self) -> None:
        """Begins to end the children that the execution before a reset has started, and that this one does not know."""
        if self._orphans is None or self._orphans.done():
            self._orphans = in_background(self._end_orphans())

    async def _end_orphans(self) -> None:
        await workflow.wait_condition(lambda: self._context is not None)
        assert self._context is not None
        orphans = OrphansInput(run=self._context.run)
        try:
            await activity_calls.with_store(
                Orphans.end_orphans,
                limits.PUBLISH_TIMEOUT,
                "end what worked before the reset",
                orphans,
                patience=limits.FILES_TIMEOUT,
            )
        except CallFailed as failed:
            self._run_state().warn(f"worker agents of before the reset may still be at work: {failed}")

    async def _supervise(self, state: RunState) -> RunResult:
        context = await self._prepare(state)
        context.enter("planning")
        reply = await make_plan(context, state.request.strategy)
        if context.is_plan_alone:
            return await self._to_its_end(self._closed(state, "done"))
        drafts = self._drafts = Drafts(context, reply.answer)
        if state.plan.direct_answer:
            state.take_answer(reply.answer.model_copy(update={"text": state.plan.direct_answer}))
        else:
            await self._work(context, drafts, reply.strategy)
        if not state.plan.direct_answer or context.setup.answer_schema_ref is not None:
            await write_answer(context, drafts, reply.strategy)
        # What is stored tells of a completed run: a cancellation from here on changes nothing.
        return await self._to_its_end(self._closed(state, "done"))

    async def _prepare(self, state: RunState) -> RunContext:
        """Returns the run's surroundings, fixed by its first activity."""
        run, info = self._own_run(), workflow.info()
        setup = await activity_calls.with_store(
            RunActivities.prepare_run,
            limits.FILES_TIMEOUT if state.request.attachments else limits.SETUP_TIMEOUT,
            "prepare the run",
            SetupInput(
                run=run,
                request=state.request,
                brief=self._nested.brief if self._nested else None,
                own_first_run_id=info.first_execution_run_id,
            ),
        )
        kept = setup.model_dump(include={"store_id", "grant_ref", "files_ref"})
        run = run.model_copy(update=kept)
        ceilings = None if self._nested else setup.ceilings
        advice, team = setup.team.on_failure, setup.team.name
        state.prepared(ceilings, team, advice, setup.warnings, setup.model_notice, setup.extracts)
        if setup.was_reset:
            state.restart()
            self._leave_no_orphans()
        notices = Notices(run, state, is_root=self._nested is None) if setup.notices else None
        self._outbox.begin([] if self._nested else setup.search_attributes, notices)
        self._context = RunContext(
            state=state,
            setup=setup,
            run=run,
            show=self._outbox.show,
            changed=self._changed,
            children=self._outbox.children,
            team=setup.team,
            team_ref=setup.team_ref,
            words=Words(partial(activity_calls.keep_words, run)),
            nested=self._nested,
            is_bare=self._is_bare,
            part=self._part,
        )
        return self._context

    async def _work(self, context: RunContext, drafts: Drafts, strategy: StrategyName) -> None:
        """Has the plan carried out, replanned where that helps, and reviewed if an answer is to be written of it."""
        state, way = context.state, STRATEGIES[strategy]
        context.enter("executing")
        replans = 0 if way.plans_steps else state.request.max_replans
        if replans and context.leaves_out("replan"):
            replans = 0
        replanning = Replanning(context, replans)
        dispatch = Dispatch(context, replanning, drafts)
        await dispatch.execute()
        while await self._has_more_work(context, way):
            await dispatch.execute()
        state.check_success()
        if self._is_reviewed(context, strategy) and not context.leaves_out("review"):
            await review(context, dispatch, replanning)
        while state.steering.retries:
            await dispatch.execute()

    @staticmethod
    async def _has_more_work(context: RunContext, way: Strategy) -> bool:
        """True if a retry was asked for, or the planner has another step."""
        steering = context.state.steering
        if steering.retries:
            return True
        if not way.plans_steps:
            return False
        has_step = await next_step(context)
        # A retry may come while the planner looks for a step, and finds that none is needed.
        return has_step or bool(steering.retries)

    @staticmethod
    def _is_reviewed(context: RunContext, strategy: StrategyName) -> bool:
        """True if findings are reviewed: a finding that is the answer as it stands is not."""
        if not context.state.request.max_reviews or sole_finding(context, strategy) is not None:
            return False
        if not context.setup.reviewed:
            context.state.trace.note("review_left_out", model=context.setup.supervisor_models[0])
        return context.setup.reviewed

    def _keep_findings(self, state: RunState, why: Problem) -> bool:
        """True if the findings of a nested supervisor stand in for its answer, so that they are not lost upward."""
        if self._nested is None or not state.board.usable():
            return False
        state.board.close(why)
        state.answer_by_findings(why.message)
        return True

    async def _failed(self, state: RunState, problem: Problem) -> ApplicationError:
        state.fail(problem)
        message = f"{state.advice} ({problem.message})" if state.advice else problem.message
        result = await self._closed(state, "failed", problem)
        return ApplicationError(message, result, type=problem.type, non_retryable=True)

    async def _closed(
        self, state: RunState, phase: Phase, why: Problem | None = None, patience: timedelta | None = None
    ) -> RunResult:
        """Returns the result once all of it is stored. With `patience` a store that is away is waited for so long."""
        if self._drafts is not None:  # under way if the run ends before its answer is written
            await stop_all(self._drafts.tasks())
        state.finish()
        if why is not None:
            state.board.close(why)
        state.enter(phase)
        self._outbox.show()
        is_nested = self._nested is not None
        result = await _published(state, self._context, patience, self._hurry, is_nested=is_nested)
        if self._orphans is not None:
            if self._context is not None:  # else the run ended before it could know of any
                left = patience.total_seconds() if patience else None
                await workflow.wait([self._orphans], timeout=left)
            await stop_all([self._orphans])
        await self._store_wait.end()
        await self._outbox.close()
        # An update that was accepted gets its reply before the run is closed.
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _to_its_end(self, closing: Coroutine[Any, Any, _T]) -> _T:
        """Returns the result of closing a run.

        A cancellation that comes meanwhile changes only that a store which is away is not waited for any longer.
        """
        task = asyncio.create_task(closing)
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                self._hurry.set()
        return task.result()


def _run_problem(error: SupervisionError | CallFailed) -> Problem:
    if isinstance(error, SupervisionError):
        return Problem(type=error.kind, message=error.message)
    return error.problem.model_copy(update={"type": run_kind(error.problem.type)})


async def _published(
    state: RunState,
    context: RunContext | None,
    patience: timedelta | None,
    hurry: asyncio.Event,
    *,
    is_nested: bool,
) -> RunResult:
    """Returns the result as it fits into a payload, after all of it was stored; a nested one is for its parent.

    If it cannot be stored it is returned all the same, with as much as a payload takes. Without a `context` the run
    ended before it had a store.
    """
    if context is not None and not state.tables:
        with contextlib.suppress(CallFailed):
            await in_time(tabulate(context, patience), hurry)
    result, room, record_ref = result_of(state), limits.PAYLOAD_AIM_BYTES, ""
    if context is not None:
        try:
            stored = await in_time(stored_result(state, context, result, patience), hurry)
        except CallFailed as failed:
            state.warn(f"the result could not be stored: {failed}")
            room = PUBLISH_BYTES
        else:
            result.result_ref = stored.result_ref
            result.trace_ref = stored.trace_ref
            result.answer_ref = stored.answer_ref or result.answer_ref
            record_ref = stored.record_ref
            state.stored(result.result_ref, result.trace_ref, result.answer_ref)
        # A call that was cancelled may have been answered while this waited, or just now: what it cost is booked.
        await let_ready_tasks_finish()
        result.usage, result.spend, result.warnings = state.usage, state.spending.rows(), [*state.warnings]
    if is_nested:
        return nested_result(state, result, fit(result, _NESTED_RESULT_BYTES), record_ref)
    return fit(result, room)
