"""One goal, from the request to the answer: plan, delegate on readiness, write one honest answer."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import PlanInput, PublishInput, RunRef, RunSetup, SetupInput
    from supervision import limits
    from supervision.base import SupervisionError
    from supervision.fitting import fit
    from supervision.plan import Plan
    from supervision.request import RunRequest, parse_request
    from supervision.result import Problem, RunResult
    from supervision.run_state import RunState
    from supervision.status import Phase, Status, TracePage
    from supervision.text import cut
    from workflows import calls
    from workflows.delegation import Delegation
    from workflows.failures import cancelled, model_problem, problem, run_error
    from workflows.synthesis import write_answer
    from workflows.visibility import Visibility


@workflow.defn
class SupervisorWorkflow:
    """Runs a goal. Every anticipated failure closes the run with a typed error and the partial result in it."""

    def __init__(self) -> None:
        self._state: RunState | None = None
        self._setup: RunSetup | None = None
        self._visibility = Visibility()
        self._answer_ref: str | None = None

    @workflow.run
    async def run(self, request: RunRequest | None = None, *surplus: object) -> RunResult:
        """The answer to the goal, or a typed failure.

        The signature takes any input as plain JSON, so that a bad one ends as `InvalidRequest` instead of blocking.
        """
        try:
            asked = parse_request(request, surplus)
        except SupervisionError as error:
            raise ApplicationError(error.message, type=error.type, non_retryable=True) from error
        state = self._state = RunState(asked, workflow.now, workflow.info().start_time)
        try:
            return await self._supervise(state)
        except SupervisionError as error:
            raise await self._failed(state, error.type, error.message) from error
        except ActivityError as error:
            if cancelled(error):
                await self._cancelled(state)
                raise
            what = problem(error)
            raise await self._failed(state, what.type, what.message) from error
        except asyncio.CancelledError:
            await self._cancelled(state)
            raise

    async def _supervise(self, state: RunState) -> RunResult:
        setup = self._setup = await calls.prepare_run(
            SetupInput(run_id=workflow.info().workflow_id, request=state.request)
        )
        state.warnings, state.model_notice = list(setup.warnings), setup.model_notice
        self._visibility.usable = setup.search_attributes
        run = RunRef(run_id=workflow.info().workflow_id, store_id=setup.store_id)
        self._enter(state, "planning")
        plan_ref = await self._plan(state, setup, run)
        if state.plan.direct_answer:
            state.answer, state.confidence = state.plan.direct_answer, None
            return await self._done(state)
        self._enter(state, "executing")
        await Delegation(state, setup, run, plan_ref, self._show).execute()
        self._enter(state, "synthesizing")
        began = workflow.now()
        self._answer_ref = await write_answer(state, setup, run, plan_ref)
        state.synthesis_seconds = (workflow.now() - began).total_seconds()
        return await self._done(state)

    async def _plan(self, state: RunState, setup: RunSetup, run: RunRef) -> str:
        """Asks for a plan until it can run, at most three times; returns where the whole plan is stored."""
        began = workflow.now()
        head, problems = None, [""]
        for attempt in range(1, limits.PLAN_TRIES + 1):
            state.note("plan_requested", attempt=attempt)
            plan_input = PlanInput(
                run=run,
                goal_ref=setup.goal_ref,
                team_ref=setup.team_ref,
                model=setup.supervisor_model,
                attachments=setup.attachments,
                max_subtasks=state.request.max_subtasks,
                strategy=state.request.strategy,
                attempt=attempt,
                head=head,
                problems=problems if head else [],
            )
            try:
                reply = await calls.plan(plan_input, state.deadline_at)
            except ActivityError as error:
                if cancelled(error):
                    raise
                what = model_problem(error)
                raise SupervisionError(run_error(what.type), what.message) from error
            state.own_usage += reply.usage
            state.planning_seconds = (workflow.now() - began).total_seconds()
            if reply.refusal:
                raise SupervisionError("InvalidPlan", f"the planner refused the goal: {reply.refusal}")
            if reply.plan and reply.plan_ref:
                state.adopt(reply.plan)
                state.note("plan_accepted", subtasks=len(reply.plan.subtasks), revision=reply.plan.revision)
                return reply.plan_ref
            head, problems = reply.head, [cut(item, 400) for item in reply.problems[:20]]
            state.note("plan_rejected", attempt=attempt, problems=list(problems))
        kind = "NoSubtasks" if any("no subtasks" in item for item in problems) else "InvalidPlan"
        raise SupervisionError(kind, f"no plan that can run after {limits.PLAN_TRIES} tries: " + "; ".join(problems))

    async def _done(self, state: RunState) -> RunResult:
        state.finished_at = workflow.now()
        self._enter(state, "done")
        return await self._published(state)

    async def _failed(self, state: RunState, type: str, message: str) -> ApplicationError:
        """Closes the books of a run that gave no answer; the partial result travels in the error."""
        state.board.cancel_waiting(Problem(type=type, message=message))
        state.error, state.finished_at = f"{type}: {message}", workflow.now()
        self._enter(state, "failed")
        try:
            result = await self._published(state)
        except ActivityError:
            result = fit(state.result())
        return ApplicationError(cut(message, limits.ERROR_BYTES), result, type=type, non_retryable=True)

    async def _cancelled(self, state: RunState) -> None:
        """Keeps what a cancelled run had, in the store and in the memo: a cancelled run can return nothing."""
        state.board.cancel_waiting(Problem(type="Cancelled", message="the run was cancelled"))
        state.finished_at = workflow.now()
        self._enter(state, "cancelled")
        try:
            result = await self._published(state)
        except ActivityError:
            result = fit(state.result())
        self._visibility.keep_partial(result)

    async def _published(self, state: RunState) -> RunResult:
        """The result as it fits into a payload, after all of it was stored."""
        result = state.result()
        if self._setup is None:
            return fit(result)
        published = await calls.publish_result(
            PublishInput(
                run=RunRef(run_id=workflow.info().workflow_id, store_id=self._setup.store_id),
                result=result,
                answer_ref=self._answer_ref,
                answer_preview=state.answer,
                trace=state.events,
            )
        )
        result.result_ref = published.result_ref
        return fit(result)

    def _enter(self, state: RunState, phase: Phase) -> None:
        state.phase = phase
        state.note("phase", phase=phase)
        self._visibility.enter(state)
        self._show()

    def _show(self) -> None:
        if self._state:
            workflow.set_current_details(self._state.details())

    @workflow.query
    def status(self, cursor: int = 0) -> Status:
        """Where the run stands; subtasks 100 a page."""
        return self._known().status(cursor)

    @workflow.query
    def plan(self) -> Plan:
        """The plan; empty while it is being made."""
        return self._known().plan

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """What happened in the root since a cursor."""
        return self._known().trace(cursor)

    @workflow.query
    def result(self) -> RunResult:
        """The result so far."""
        return fit(self._known().result())

    def _known(self) -> RunState:
        if self._state is None:
            raise ValueError("this run has not begun, or its input was not valid: its result says why")
        return self._state
