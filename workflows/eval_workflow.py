"""An eval: each question of a set as a run of its own, within one budget and deadline.

The runs are roots: they outlive an eval that is terminated, and a new eval with the same id finds
them.
"""

import asyncio
import contextlib
from collections import deque
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.common import SearchAttributeKey, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ApplicationError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from activities.contracts.eval_contracts import (
        BeginEval,
        CasePart,
        CasesInput,
        EvalBegun,
        EvalCall,
        EvalInput,
        EvalProgress,
        EvalResult,
        EvalState,
        ScoresInput,
        ToJudge,
        is_eval_id,
    )
    from activities.evals.eval_activities import EvalActivities
    from activities.questions.opinions import OPINION, OpinionInput, OpinionReply
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.base.text import label, money
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.scores.eval_budget import (
        RunBudget,
        Spent,
        next_grant,
        to_go,
    )
    from temporal_supervisor.supervision.scores.score_table import VERDICTS, WORDS, EvalStatus

    from workflows.background import in_background
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed, problem_of
    from workflows.children.child_contracts import BareInput, PartInput
    from workflows.subtasks.child_runs import STARTS_AT_ONCE

SCORE = SearchAttributeKey.for_float("SupervisorScore")
_STATUS = SearchAttributeKey.for_keyword("SupervisorStatus")
_USD = SearchAttributeKey.for_float("SupervisorUsd")
_OF_ALL = {ErrorKind.INVALID_REQUEST, ErrorKind.UNKNOWN_TEAM, ErrorKind.PROVIDER_AUTHENTICATION}
"""With these the first runs fail alike, and the others would: they are not begun."""


@workflow.defn
class EvalWorkflow:
    """Runs the questions of a set and judges the answers.

    It ends as partial when its budget or deadline is used up.
    """

    @workflow.init
    def __init__(self, given: EvalInput | None = None, *surplus: object) -> None:
        """Reads the input.

        A bad input is rejected by `run`: an error raised here would block the workflow.
        """
        self._questions: Questions | None = None
        with contextlib.suppress(ValueError):
            self._questions = Questions(EvalInput.model_validate(given))

    @workflow.run
    async def run(self, given: EvalInput | None = None, *surplus: object) -> EvalResult:
        """Returns the result of the eval; the table of all scores is in the store."""
        questions = self._questions
        if questions is None or surplus or not is_eval_id(workflow.info().workflow_id):
            words = "an eval is started by the command `eval`, under an id that begins with eval-"
            raise ApplicationError(words, type=ErrorKind.INVALID_REQUEST, non_retryable=True)
        try:
            await questions.begin()
            await questions.ask_all()
            return await questions.close()
        except CallFailed as failed:
            problem = failed.problem
            raise ApplicationError(
                problem.message,
                type=problem.type,
                non_retryable=True,
            ) from failed
        except asyncio.CancelledError:
            # Temporal asks for a cancellation once: what follows is not cancelled again.
            await questions.cancel()
            raise

    @workflow.query
    def progress(self) -> EvalProgress | None:
        """The progress: counts, spending, and the estimated time and cost to go."""
        return self._questions.progress() if self._questions else None

    def details(self) -> str:
        """Returns the Markdown for the Web UI."""
        return self._questions.details() if self._questions else ""


class _UnderWay(NamedTuple):
    """A question under way: its name, the grant of its run, and the task that awaits its score."""

    name: str
    grant: RunBudget
    task: asyncio.Task[None]


class Questions:
    """The questions of one eval, waiting and under way."""

    def __init__(self, given: EvalInput) -> None:
        self._given = given
        self._state = given.state or EvalState(began_at=workflow.now())
        self._call = EvalCall(
            eval_id=workflow.info().workflow_id,
            store_id=self._state.store_id,
            set_ref=given.set_ref,
        )
        self._waiting: deque[CasePart] = deque()
        self._under_way: dict[int, _UnderWay] = {}  # by index
        self._started: set[str] = set()
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self._status: EvalStatus = "running"
        self._why = ""
        self._changed = False

    async def begin(self) -> None:
        """Copies the set into the eval, unless an earlier execution has done so.

        Raises CallFailed.
        """
        if self._call.store_id:
            return
        begun: EvalBegun = await activity_calls.store_call(
            EvalActivities.begin_eval, limits.SETUP_TIMEOUT, "take over the set", self._beginning()
        )
        self._call = self._call.model_copy(
            update={"store_id": begun.store_id, "set_ref": begun.set_ref},
        )
        self._state.begin(begun)

    def _beginning(self) -> BeginEval:
        judge = self._given.judge
        expires_at = self._deadline_at if judge else None
        return BeginEval(**self._call.model_dump(), judge=judge, expires_at=expires_at)

    async def ask_all(self) -> None:
        """Runs the questions, as many at once as allowed, until no more may begin.

        Continues as new when the history gets long. Raises CallFailed.
        """
        while True:
            self._changed = False
            self._stop_at_deadline()
            while self._may_begin():
                if not await self._begin_next():
                    break
                self._stop_at_deadline()  # cases may have been loaded meanwhile
            if not self._under_way:
                if self._is_over:
                    return
                workflow.continue_as_new(self._carried_over())
            await workflow.wait_condition(lambda: self._changed)

    async def close(self) -> EvalResult:
        """Returns the result, after the table was stored. Raises CallFailed."""
        self._status = "partial" if self._state.ended < self._given.total else "completed"
        return await self._store_result()

    async def cancel(self) -> None:
        """Cancels the runs under way, and stores the scores of the others."""
        self._status, self._why = "cancelled", "the eval was cancelled"
        for run_id in sorted(self._started):
            with contextlib.suppress(FailureError):  # it has ended
                await workflow.get_external_workflow_handle(run_id).cancel()
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: not self._under_way,
                timeout=2 * limits.CLOSING_PATIENCE,
            )
        for question in self._under_way.values():
            question.task.cancel()
        with contextlib.suppress(CallFailed):
            if self._call.store_id:
                await self._store_result(limits.CLOSING_PATIENCE)

    def progress(self) -> EvalProgress:
        """Returns the progress of the eval."""
        state = self._state
        elapsed = (workflow.now() - state.began_at).total_seconds()
        rest = to_go(self._given.total - state.ended, state.ended, elapsed, state.usage.usd)
        return EvalProgress(
            eval_id=self._call.eval_id,
            status=self._status,
            why=self._why,
            planned=self._given.total,
            ended=state.ended,
            under_way=[question.name for question in self._under_way.values()],
            counts=state.counts,
            flagged_though_right=state.flagged_though_right,
            usage=state.usage,
            began_at=state.began_at,
            deadline_at=self._deadline_at,
            seconds_to_go=rest.seconds if self._status == "running" else 0.0,
            usd_to_go=rest.usd if self._status == "running" else 0.0,
        )

    def details(self) -> str:
        """Returns the counts as a table in Markdown."""
        state = self._state
        rows = [f"| {WORDS[verdict]} | {state.counts.get(verdict, 0)} |" for verdict in VERDICTS]
        asked = f"{state.ended} of {self._given.total} questions"
        head = f"{asked}, {money(state.usage.usd)}. {self._why}"
        return "\n".join([head, "", "| verdict | questions |", "|---|---|", *rows])

    @property
    def _deadline_at(self) -> datetime:
        return self._state.began_at + timedelta(seconds=self._given.deadline_seconds)

    @property
    def _time_left(self) -> float:
        return (self._deadline_at - workflow.now()).total_seconds()

    @property
    def _is_history_long(self) -> bool:
        """True if the history should not grow further.

        Then the runs under way end, and the eval continues as new.
        """
        info = workflow.info()
        length = info.get_current_history_length()
        return info.is_continue_as_new_suggested() or length > limits.EVAL_EVENTS

    def _is_cancelled(self) -> bool:
        """True once the eval was cancelled, which may happen at every await."""
        return self._status == "cancelled"

    def _may_begin(self) -> bool:
        if self._is_over or self._is_history_long:
            return False
        return len(self._under_way) < self._given.parallel

    @property
    def _is_over(self) -> bool:
        """True if no further question begins: none is left, or there is a reason to stop."""
        return self._state.next >= self._given.total or bool(self._why)

    def _stop_at_deadline(self) -> None:
        """Sets the reason to stop if questions are left when the time for another one is over."""
        has_time = self._time_left >= limits.MIN_DEADLINE.total_seconds()
        if not self._is_over and not has_time:
            self._why = "its deadline came"

    async def _begin_next(self) -> bool:
        """Begins the next question. Returns False if the budget has no room for it now."""
        given, state = self._given, self._state
        slots = min(given.parallel - len(self._under_way), given.total - state.next)
        grants = tuple(question.grant for question in self._under_way.values())
        # Without a budget in dollars a run has no share of one.
        usd = given.own.usd if given.budget.usd is not None else None
        own = RunBudget(given.own.tokens, usd)
        grant = next_grant(given.budget, own, Spent(state.usage, state.ended, grants), slots)
        if grant is None:
            if not self._under_way:
                self._why = "its budget is used up"
            return False
        if not self._waiting:
            await self._load_cases()
        index, case = state.take_next(), self._waiting.popleft()
        task = in_background(self._run_question(index, case, grant))
        self._under_way[index] = _UnderWay(case.name, grant, task)
        return True

    async def _load_cases(self) -> None:
        wanted = CasesInput(**self._call.model_dump(), first=self._state.next)
        summary = f"questions from {self._state.next + 1} on"
        reply = await activity_calls.store_call(
            EvalActivities.eval_cases,
            limits.SETUP_TIMEOUT,
            summary,
            wanted,
        )
        self._waiting.extend(reply.cases)

    async def _run_question(self, index: int, case: CasePart, grant: RunBudget) -> None:
        """Runs a question to its end, and has the answer judged and counted."""
        try:
            ended, problem = await self._run_case(case, grant)
            await self._judge(
                index,
                case,
                ended,
                problem,
                unscored=self._was_cut_short(grant, problem),
            )
        finally:
            del self._under_way[index]
            self._changed = True

    async def _run_case(self, case: CasePart, grant: RunBudget) -> tuple[bool, Problem | None]:
        """Starts the run of a question. Returns True once it has ended, and its problem.

        Returns False for a run that an earlier execution has started, whose end is not known.
        """
        run_id = f"{self._call.eval_id}/{case.name}"
        request = self._request(case, grant)
        goal = str(request["goal"])
        try:
            async with self._starts:
                if self._is_cancelled():  # while others started
                    raise asyncio.CancelledError
                handle = await workflow.start_child_workflow(
                    "SupervisorWorkflow",
                    args=[request, *self._marks(case)],
                    id=run_id,
                    parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    static_summary=label(goal, limits.LINE_BYTES),
                    static_details=label(goal, limits.SUMMARY_BYTES),
                )
            self._started.add(run_id)
            if self._is_cancelled():  # while it was started
                await workflow.get_external_workflow_handle(run_id).cancel()
            await handle
        except WorkflowAlreadyStartedError:
            return False, None
        except FailureError as error:
            if is_cancelled_exception(error):
                return True, Problem(type=ErrorKind.CANCELLED, message="the run was cancelled")
            return True, problem_of(error)
        finally:
            self._started.discard(run_id)
        return True, None

    @staticmethod
    def _marks(case: CasePart) -> list[BareInput | PartInput]:
        """Returns the extra input of a bare or partial run; none for a usual one."""
        if case.bare:
            return [BareInput(bare=True)]
        if case.part == "plan" or case.part == "answer":
            return [PartInput(part=case.part)]
        return []

    def _request(self, case: CasePart, grant: RunBudget) -> dict[str, object]:
        """Returns the request of a run, within the rest of the eval's budget and time."""
        asked = case.request.get("budget")
        own = asked if isinstance(asked, dict) else {}
        granted = {name: amount for name, amount in grant._asdict().items() if amount is not None}
        deadline = max(1.0, min(self._given.own.seconds, self._time_left))
        return {**case.request, "budget": {**own, **granted}, "deadline": deadline}

    def _was_cut_short(self, grant: RunBudget, problem: Problem | None) -> bool:
        """True if the eval ended a run early, for lack of budget or because it was cancelled."""
        if problem is None:
            return False
        if problem.type is ErrorKind.BUDGET_EXHAUSTED and self._is_lowered(grant):
            self._why = self._why or "its budget is used up"
            return True
        return problem.type is ErrorKind.CANCELLED and self._is_cancelled()

    def _is_lowered(self, grant: RunBudget) -> bool:
        """True if a grant is smaller than a run's own limits."""
        own = self._given.own
        less_tokens = grant.tokens is not None and (own.tokens is None or grant.tokens < own.tokens)
        less_usd = grant.usd is not None and (own.usd is None or grant.usd < own.usd)
        return less_tokens or less_usd

    async def _judge(
        self,
        index: int,
        case: CasePart,
        ended: bool,
        problem: Problem | None,
        *,
        unscored: bool,
    ) -> None:
        given = ToJudge(
            **self._call.model_dump(),
            index=index,
            ended=ended,
            problem=problem,
            unscored=unscored,
        )
        summary = f"judge {case.name}"
        try:
            judged = await activity_calls.store_call(
                EvalActivities.judge_case,
                limits.PUBLISH_TIMEOUT,
                summary,
                given,
            )
        except CallFailed as failed:
            workflow.logger.warning("the score of %s is not known: %s", case.name, failed)
            self._state.count(None)
            return
        self._state.count(judged, unscored=unscored)
        if judged.is_text and self._state.grant_ref:
            await self._ask_judge(index)
        if problem is not None and problem.type in _OF_ALL and self._state.has_failed_alike:
            self._why = f"its first runs failed: {judged.error}"

    async def _ask_judge(self, index: int) -> None:
        """Asks a model for its opinion of an answer; without one the verdict of the code counts."""
        state, set_ref = self._state, self._call.set_ref
        run = self._call.as_run(state.grant_ref)
        call = OpinionInput(run=run, goal_ref=set_ref, model=self._given.judge, index=index)
        try:
            reply = await activity_calls.model_call(
                OPINION.name,
                call,
                OpinionReply,
                self._deadline_at,
                state.model_queue,
                state.add_usage,
            )
        except CallFailed as failed:
            state.set_no_opinion(str(failed))
            return
        if not reply.has_opinion:
            state.set_no_opinion(reply.problem or reply.refusal or "the model gave none")

    async def _store_result(self, patience: timedelta | None = None) -> EvalResult:
        state = self._state
        shown: dict[SearchAttributeKey[Any], Any] = {
            SCORE: state.share_right,
            _STATUS: self._status,
            _USD: state.usage.usd,
        }
        known = {key: value for key, value in shown.items() if key.name in state.search_attributes}
        updates = [key.value_set(value) for key, value in known.items() if value is not None]
        if updates:
            workflow.upsert_search_attributes(updates)
        given = ScoresInput(
            **self._call.model_dump(),
            status=self._status,
            why=self._why,
            no_opinion=state.no_opinion,
        )
        ref = await activity_calls.store_call(
            EvalActivities.tabulate_eval,
            limits.PUBLISH_TIMEOUT,
            "make the table",
            given,
            patience=patience,
        )
        return EvalResult(
            status=self._status,
            n=state.ended,
            planned=self._given.total,
            why=self._why,
            counts=state.counts,
            usage=state.usage,
            table_ref=ref,
        )

    def _carried_over(self) -> EvalInput:
        kept = self._state.model_copy(update={"store_id": self._call.store_id})
        return self._given.model_copy(update={"state": kept, "set_ref": self._call.set_ref})
