"""The work on a goal, from its plan to its answer."""

import asyncio
import contextlib
from datetime import timedelta
from functools import partial

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.contract.progress import Phase
    from temporal_supervisor.supervision.contract.strategy import STRATEGIES, Strategy, StrategyName
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.answer.drafts import Drafts
    from workflows.answer.publish import Publication, StoredResult, in_time
    from workflows.answer.review_rounds import ReviewRounds
    from workflows.answer.write_answer import AnswerWriter
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.saved_work import EarlierFindings
    from workflows.calls.supervisor_model import SupervisorModel
    from workflows.outbox import Outbox
    from workflows.plan.approval import Approval
    from workflows.plan.make_plan import PlanMaker
    from workflows.plan.replanning import Replanning
    from workflows.plan.templates import Templates
    from workflows.run.people import Words
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms
    from workflows.run.slot_waits import SlotWaits
    from workflows.run.waiting import Waiting
    from workflows.subtasks.child_runs import ChildRuns
    from workflows.subtasks.dispatch import Dispatch
    from workflows.subtasks.work_context import WorkContext


class GoalRun:
    """The work on one goal: plan, dispatch, review, answer.

    `changed` wakes the dispatch.
    """

    def __init__(
        self,
        terms: RunTerms,
        state: RunState,
        plan: PlanInForce,
        outbox: Outbox,
        changed: asyncio.Event,
    ) -> None:
        self.terms = terms
        self._state = state
        self._issue_soon = issue_soon = outbox.issue_soon
        words = Words(partial(activity_calls.store_words, terms.run))
        waiting = Waiting(terms, state, words, issue_soon, changed)
        self._model = SupervisorModel(terms, state, plan, waiting)
        self._earlier = EarlierFindings(terms, state, plan)
        self._work_context = WorkContext(
            terms=terms,
            state=state,
            plan=plan,
            model=self._model,
            waiting=waiting,
            slots=SlotWaits(state.slots, changed),
            children=ChildRuns(terms, state, outbox.children),
            issue_soon=issue_soon,
            changed=changed,
        )
        approval = Approval(state, waiting, issue_soon, is_root=terms.nested is None)
        self._plans = PlanMaker(terms, state, plan, self._model, self._earlier, approval)
        self._templates = Templates(terms, state, plan, self._earlier, issue_soon)
        self._writer = AnswerWriter(terms, state, plan, self._model)
        self._publication = Publication(terms, state, plan)
        self._drafts: Drafts | None = None

    async def run(self) -> None:
        """Returns once the answer is in the run's state, or the plan, if the plan is all the work.

        Raises SupervisionError or CallFailed if there is none.
        """
        state = self._state
        self._enter("planning")
        reply = await self._plans.make_plan(state.request.strategy)
        if self.terms.is_plan_alone:
            return
        self._drafts = drafts = Drafts(state, self._model, reply.answer, self._issue_soon)
        if state.plan.direct_answer:
            text = {"text": state.plan.direct_answer}
            state.answer.replace(reply.answer.model_copy(update=text))
            lacks_json = self.terms.setup.answer_schema_ref is not None
            if not lacks_json:
                return
        else:
            await self._execute_plan(drafts, reply.strategy)
        self._enter("synthesizing")
        await self._writer.write(drafts, reply.strategy)

    async def stop_drafts(self) -> None:
        """Ends a draft that is under way, for a run that ends before its answer is written."""
        if self._drafts is not None:
            await self._drafts.end()

    async def stored_result(self, patience: timedelta | None, hurry: asyncio.Event) -> StoredResult:
        """Returns the result, stored with the tables of templates, or as it is if storing fails.

        With `patience` the store may be unavailable for that long, and only briefly after the
        `hurry`.
        """
        if not self._state.answer.tables:
            with contextlib.suppress(CallFailed):
                await in_time(self._writer.tabulate(patience), hurry)
        return await self._publication.stored_result(patience, hurry)

    async def _execute_plan(self, drafts: Drafts, strategy: StrategyName) -> None:
        """Executes the plan, with revisions where they help, and has its findings reviewed."""
        state, way = self._state, STRATEGIES[strategy]
        self._enter("executing")
        replanning = Replanning(state, self._plans, self._templates, self._allowed_replans(way))
        dispatch = Dispatch(self._work_context, self._earlier, replanning, drafts)
        await dispatch.execute()
        while await self._has_more_work(way):
            await dispatch.execute()
        state.check_success()
        if self._is_reviewed(strategy) and not self._model.leaves_out("review"):
            self._enter("validating")
            await ReviewRounds(state, self._model, dispatch, replanning).run()
        # A retry that a person asked for during the review: its finding is not reviewed again.
        while state.steering.retries:
            await dispatch.execute()

    def _allowed_replans(self, way: Strategy) -> int:
        """Returns the number of revisions of the plan that failed work may cause."""
        replans = 0 if way.plans_steps else self._state.request.max_replans
        return 0 if replans and self._model.leaves_out("replan") else replans

    async def _has_more_work(self, way: Strategy) -> bool:
        """True if a person asked for a retry, or the planner has planned another step."""
        steering = self._state.steering
        if steering.retries:
            return True
        if not way.plans_steps:
            return False
        has_step = await self._plans.next_step()
        # A retry may come while the planner looks for a step, and finds that none is needed.
        return has_step or bool(steering.retries)

    def _is_reviewed(self, strategy: StrategyName) -> bool:
        """True if findings are reviewed. A finding that is the answer word for word is not.

        The trace notes a review that the setup leaves out.
        """
        state, setup = self._state, self.terms.setup
        if not state.request.max_reviews or self._writer.routed_subtask(strategy) is not None:
            return False
        if not setup.reviewed:
            state.trace.note("review_left_out", model=setup.supervisor_models[0])
        return setup.reviewed

    def _enter(self, phase: Phase) -> None:
        self._state.enter(phase)
        self._issue_soon()
