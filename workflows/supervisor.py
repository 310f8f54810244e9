"""One goal, from the request to the answer: plan, delegate on readiness, review, write one honest answer."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from activities.contracts.run_contracts import PublishInput, RunRef, SetupInput
    from supervision import limits
    from supervision.contract.request import RunRequest, parse_request
    from supervision.contract.result import Problem, RunResult
    from supervision.contract.status import Phase
    from supervision.errors import ErrorKind, SupervisionError
    from supervision.run.payload_fit import fit
    from supervision.run.run_state import RunState
    from supervision.run.success_rule import explain, importance, met
    from supervision.text import cut
    from workflows.answer.drafts import Drafts
    from workflows.answer.review_rounds import review
    from workflows.answer.write_answer import write_answer
    from workflows.calls import activity_calls
    from workflows.child_contracts import NestedInput
    from workflows.failures import cancelled, problem
    from workflows.handlers import Messages
    from workflows.plan.make_plan import make_plan
    from workflows.plan.replanning import Revisions
    from workflows.run_context import RunContext
    from workflows.subtasks.dispatch import Delegation


@workflow.defn
class SupervisorWorkflow(Messages):
    """Runs a goal. Every anticipated failure closes the run with a typed error and the partial result in it."""

    def __init__(self) -> None:
        super().__init__()
        self._context: RunContext | None = None

    @workflow.run
    async def run(self, request: RunRequest | None = None, *surplus: object) -> RunResult:
        """The answer to the goal, or a typed failure.

        The signature takes any input as plain JSON, so that a bad one ends as `InvalidRequest` instead of blocking.
        """
        try:
            asked = self._parse(request, surplus)
        except SupervisionError as error:
            raise ApplicationError(error.message, type=error.kind, non_retryable=True) from None
        state = self._state = RunState(
            asked, workflow.now, workflow.info().start_time, self._nested.grant if self._nested else None
        )
        if self._nested is not None:
            state.root_has_finding = self._nested.root_has_finding
        try:
            return await self._supervise(state)
        except SupervisionError as error:
            raise await self._failed(state, error.kind, error.message) from error
        except ActivityError as error:
            if cancelled(error):
                return await self._cancelled(state, error)
            what = problem(error)
            raise await self._failed(state, what.type, what.message) from error
        except asyncio.CancelledError as error:
            return await self._cancelled(state, error)

    async def _supervise(self, state: RunState) -> RunResult:
        run = self._run_ref()
        setup = await activity_calls.prepare_run(
            SetupInput(
                run_id=run.run_id,
                scope=run.scope,
                request=state.request,
                brief=self._nested.brief if self._nested else None,
            )
        )
        run.store_id = setup.store_id or run.store_id
        if setup.ceilings and not self._nested:
            state.keep_within(setup.ceilings)
        state.warnings, state.model_notice = list(setup.warnings), setup.model_notice
        self._visibility.usable = [] if self._nested else setup.search_attributes
        context = RunContext(state, setup, run, self._show, self._bell, self._nested, team_ref=setup.team_ref)
        self._context = context
        self._enter(state, "planning")
        reply = await make_plan(context, state.request.strategy)
        drafts = Drafts(context, state.request.incremental_synthesis)
        if state.plan.direct_answer:
            state.answer, state.answer_ref = state.plan.direct_answer, reply.answer_ref
            drafts.draft_ref = reply.answer_ref
            if setup.answer_schema_ref is None:
                return await self._done(state)
        else:
            await self._work(context, drafts, step=reply.strategy == "step")
        self._enter(state, "synthesizing")
        await write_answer(context, drafts)
        return await self._done(state)

    async def _work(self, context: RunContext, drafts: Drafts, step: bool) -> None:
        """Has the plan carried out, revised where that helps, and reviewed."""
        state = context.state
        delegation = Delegation(context, drafts, Revisions(context, 0 if step else limits.REPLANS))
        self._enter(state, "executing")
        await delegation.execute()
        while step and await self._next_step(context):
            await delegation.execute()
        self._check_success(state)
        if state.request.max_reviews:
            self._enter(state, "validating")
            await review(context, delegation, drafts)

    async def _next_step(self, context: RunContext) -> bool:
        """Whether there is one more subtask to work on; without a usable word of the planner's there is none."""
        state = context.state
        room = len(state.plan.subtasks) < state.request.max_subtasks
        if not room or not state.allowance.time_left or state.allowance.out_of_budget:
            return False
        try:
            return not (await make_plan(context, "step")).finished
        except SupervisionError as error:
            if not state.board.usable():
                raise
            state.warn(f"no next step: {error.message}")
            return False

    def _check_success(self, state: RunState) -> None:
        """SupervisionError when what succeeded is not enough for the rule, or is nothing at all."""
        usable = state.board.usable()
        if not usable:
            if state.allowance.out_of_budget:
                raise SupervisionError(
                    ErrorKind.BUDGET_EXHAUSTED, f"no finding within the budget: {state.allowance.spent()}"
                )
            if not state.allowance.time_left:
                raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, "the deadline came before there was any finding")
            reasons = "; ".join(f"{gap.subtask_id}: {gap.reason}" for gap in state.gaps[:5])
            raise SupervisionError(ErrorKind.ALL_SUBTASKS_FAILED, f"no subtask succeeded ({reasons})")
        if state.request.success != "any" and not met(
            state.request.success, state.board.current(), importance(state.plan)
        ):
            said = explain(state.request.success, state.board.current(), importance(state.plan))
            raise SupervisionError(ErrorKind.QUORUM_NOT_MET, said)

    async def _done(self, state: RunState) -> RunResult:
        state.finished_at = workflow.now()
        self._enter(state, "done")
        result = await self._published(state)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _failed(self, state: RunState, type: str, message: str) -> ApplicationError:
        """Closes the books of a run that gave no answer; the partial result travels in the error."""
        state.error, state.finished_at = f"{type}: {message}", workflow.now()
        result = await self._closed(state, "failed", Problem(type=type, message=message))
        return ApplicationError(cut(message, limits.ERROR_BYTES), result, type=type, non_retryable=True)

    async def _cancelled(self, state: RunState, error: BaseException) -> RunResult:
        """Keeps what a cancelled run had, in the store and in the memo: a cancelled run can return nothing.

        A nested supervisor returns what it had, as worker agents do: the root counts all that was paid.
        """
        state.finished_at = workflow.now()
        result = await self._closed(
            state, "cancelled", Problem(type=ErrorKind.CANCELLED, message="the run was cancelled")
        )
        if self._nested is None:
            self._visibility.keep_partial(result)
            raise error
        return result

    async def _closed(self, state: RunState, phase: Phase, why: Problem) -> RunResult:
        state.board.close(why)
        self._enter(state, phase)
        try:
            result = await self._published(state)
        except ActivityError:
            result = fit(state.result())
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _published(self, state: RunState) -> RunResult:
        """The result as it fits into a payload, after all of it was stored."""
        result = state.result()
        if self._context is None:
            return fit(result)
        published = await activity_calls.publish_result(
            PublishInput(
                run=self._context.run,
                result=fit(result, limits.PUBLISH_BYTES),
                plan_ref=self._context.plan_ref or None,
                answer_ref=state.answer_ref,
                answer_preview=state.answer,
            ),
            state.recent_events(limits.PUBLISH_BYTES),
        )
        result.result_ref = state.result_ref = published.result_ref
        return fit(result)

    def _enter(self, state: RunState, phase: Phase) -> None:
        state.phase = phase
        state.note("phase", phase=phase)
        self._visibility.enter(state)
        self._show()

    def _parse(self, request: object, surplus: tuple[object, ...]) -> RunRequest:
        """The request; a parent workflow may add what a nested supervisor needs to know."""
        if workflow.info().parent is not None and len(surplus) == 1:
            try:
                self._nested = NestedInput.model_validate(surplus[0])
            except ValidationError:
                self._nested = None
            else:
                surplus = ()
        return parse_request(request, surplus)

    def _run_ref(self) -> RunRef:
        nested = self._nested
        if nested is None:
            return RunRef(run_id=workflow.info().workflow_id, store_id="")
        return RunRef(run_id=nested.root_id, store_id=nested.store_id, scope=nested.scope)
