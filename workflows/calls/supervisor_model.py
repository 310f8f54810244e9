"""The calls of a supervisor to its own model."""

from functools import partial
from typing import Literal, TypedDict

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import DependencyRef, RunRef
    from activities.questions.judgement import JUDGE, JudgeInput
    from activities.questions.question import C, Question, R
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import (
        ACCOUNT,
        ErrorKind,
        SupervisionError,
        run_kind,
    )
    from temporal_supervisor.supervision.budget.ledger import SUPERVISOR, call_estimate
    from temporal_supervisor.supervision.contract.model_choice import Effort, OptionalStep, is_off
    from temporal_supervisor.supervision.contract.usage import Usage
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls.activity_calls import CallFailed, model_call
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms
    from workflows.run.waiting import Waiting


class CallFields(TypedDict):
    """The fields that every question of a supervisor has."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    effort: Effort | None


class SupervisorModel:
    """The model of a supervisor, or the next one of its chain.

    Its calls stay within budget and time, and wait for the end of an outage.
    """

    def __init__(
        self, terms: RunTerms, state: RunState, plan: PlanInForce, waiting: Waiting
    ) -> None:
        self._run = terms.run
        self._setup = terms.setup
        self._state = state
        self._plan = plan
        self._waiting = waiting
        self._authors: dict[str, str] = {}  # the models of conversations, by their heads
        self._heard: dict[str, int] = {}  # how many of people's words are in them

    @property
    def call_fields(self) -> CallFields:
        """The fields that every question begins with."""
        return {
            "run": self._run,
            "goal_ref": self._setup.goal_ref,
            "plan_ref": self._plan.ref,
            "model": self._setup.supervisor_models[0],
            "effort": self._state.request.effort,
        }

    def author_of(self, head: str) -> str | None:
        """Returns the model that wrote the conversation at a head."""
        return self._authors.get(head)

    def leaves_out(self, step: OptionalStep) -> bool:
        """True if an optional step is switched off for the current model; the trace notes that."""
        model = self._state.models.choose(self._setup.supervisor_models)
        if not is_off(step, model, self._setup.model_off):
            return False
        self._state.trace.note("step_left_out", step=step, model=model)
        return True

    async def reply_to(
        self, question: Question[C, R], call: C, tokens: int | None = None, *, last: bool = False
    ) -> R:
        """Returns the reply to a question; the `last` one may use all budget and time left.

        It sets `tokens` aside, by default an estimate from the findings in the call. Raises
        SupervisionError if the budget has no room for the call, the deadline comes first, or the
        call failed for good.
        """
        ledger = self._state.time_and_budget.ledger
        tokens = self._tokens_of(call) if tokens is None else tokens
        left = ledger.for_synthesis.tokens
        if last and left is not None:
            tokens = min(tokens, max(left, 1))
        self._reserve(tokens, call.terms.work, last=last)
        work = object()
        try:
            return await self._call_until_answered(question, call, work, last=last)
        finally:  # when it is cancelled, too: the reservation would never end
            self._state.models.leave(work)
            ledger.settle_call(tokens, Usage())

    async def reply_or_none(self, question: Question[C, R], call: C, lost: str) -> R | None:
        """Returns the reply to an optional question; None, with the warning `lost`, without one."""
        try:
            return await self.reply_to(question, call)
        except SupervisionError as error:
            self._state.warn(f"{lost}: {error.message}")
            return None

    async def judge(
        self,
        question: Literal["select", "conflict"],
        description: str,
        findings: list[DependencyRef],
    ) -> tuple[int | None, str]:
        """Returns the index of the finding that a judge prefers, and the judge's reason.

        The index is None if the judge has no preference, or if there is no judge.
        """
        if self.leaves_out("judge"):
            return None, ""

        call = JudgeInput(
            **self.call_fields,
            number=self._state.next_number("judge"),
            question=question,
            description=description,
            findings=findings,
        )
        reply = await self.reply_or_none(JUDGE, call, "there was no judgement")
        if reply is None:
            return None, ""
        if reply.problem:
            self._state.warn(f"a judgement could not be read: {reply.problem}")
        return reply.choice, reply.resolution

    def _tokens_of(self, call: C) -> int:
        """Returns an estimate of the tokens of a call, at most those of a full prompt."""
        findings = sum(finding.bytes for finding in getattr(call, "findings", []))
        shown = min(findings, self._setup.prompt_bytes)
        return call_estimate(shown + limits.JUDGEMENT_PROMPT_BYTES)

    def _reserve(self, tokens: int, name: str, *, last: bool) -> None:
        """Sets tokens aside for a call, so that calls and grants meanwhile leave them alone.

        Raises SupervisionError if there is no time or no budget left for it.
        """
        budget = self._state.time_and_budget
        if workflow.now() >= budget.ends_at(last=last):
            raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came before {name}")
        if not budget.ledger.reserve_call(tokens, synthesis=last):
            room = f"the budget has no room for {name}, which sets {tokens:,} tokens aside"
            raise SupervisionError(ErrorKind.BUDGET_EXHAUSTED, f"{room}: {budget.spent_line()}")

    async def _call_until_answered(
        self, question: Question[C, R], call: C, work: object, *, last: bool
    ) -> R:
        """Repeats a call through outages and extended deadlines, with another model if one can."""
        state, setup, name = self._state, self._setup, call.terms.work
        budget = state.time_and_budget
        chain = [*setup.supervisor_models]
        model = state.models.choose(chain)
        while True:
            await self._waiting.until_served(name, model, work, last=last)
            await self._waiting.until_resumed()
            # As they are after the waits: limits may have changed, and people may have said more.
            expires_at = budget.ends_at(last=last)
            words = state.steering.words_to_all
            addressed = self._addressed(call, model, words)
            book = partial(self._book, model)
            try:
                reply = await model_call(
                    question.name, addressed, question.reply, expires_at, setup.model_queue, book
                )
            except CallFailed as failed:
                problem = failed.problem
                following = state.models.failed(model, chain, problem.type, failed.retry_after)
                if following != model:
                    self._note_replaced(name, model, following, problem.type)
                    state.models.leave(work)
                    model = following
                    continue
                if self._is_outage(problem.type):
                    self._begin_outage(failed, model, work)
                    continue
                # The end may come long before the deadline, if the provider asked for a longer
                # wait than that. With more time than there was, the call is repeated.
                has_more_time = budget.ends_at(last=last) > expires_at
                if problem.type is ErrorKind.TIMEOUT and has_more_time:
                    continue
                raise SupervisionError(run_kind(problem.type), problem.message) from failed
            state.models.answered(model, work)
            self._authors[reply.head] = model
            self._heard[reply.head] = len(words)
            if reply.refusal is None:
                return reply
            following = state.models.failed(model, chain, ErrorKind.REFUSED, 0)
            if following == model:
                return reply
            self._note_replaced(name, model, following, "it refused")
            model = following

    def _is_outage(self, kind: ErrorKind) -> bool:
        """True if a failed call is repeated once the model is back.

        The account's errors, which only people can mend, fail a run that has nothing to lose.
        """
        if kind is ErrorKind.CIRCUIT_OPEN:
            return True
        return kind in ACCOUNT and self._state.first_finding.exists

    def _begin_outage(self, failed: CallFailed, model: str, work: object) -> None:
        """Begins an outage of the model, or prolongs it, for all work of the run."""
        why = failed.problem.message
        if failed.problem.type is ErrorKind.CIRCUIT_OPEN:
            chance = workflow.random().random()
            self._state.model_away(model, work, why, failed.retry_after, chance)
        else:
            self._state.model_away(model, work, why)  # until a person resumes the run

    def _note_replaced(self, name: str, model: str, by: str, why: str) -> None:
        self._state.trace.note("model_replaced", work=name, model=model, by=by, why=why)

    def _addressed(self, call: C, model: str, words: list[str]) -> C:
        """Returns the call for a model, with the people's words that its conversation lacks."""
        head = getattr(call, "head", None)
        if head is None:
            return call.model_copy(update={"model": model, "steers": words})
        if self._authors.get(head, model) != model:  # no model continues another one's conversation
            return call.model_copy(update={"model": model, "steers": words, "head": None})
        unheard = words[self._heard.get(head, 0) :]
        return call.model_copy(update={"model": model, "steers": unheard})

    def _book(self, model: str, usage: Usage) -> None:
        """Books the usage of a call of the supervisor."""
        self._state.time_and_budget.ledger.settle_call(0, usage)
        self._state.add_spending(SUPERVISOR, model, usage)
