"""A supervisor's questions to its model: within budget and time, through outages, to the next model of its chain."""

from functools import partial
from typing import Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import DependencyRef
    from activities.questions.judgement import JUDGE, JudgeInput
    from activities.questions.question import C, Question, R
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ACCOUNT, ErrorKind, SupervisionError, run_kind
    from temporal_supervisor.supervision.budget.ledger import SUPERVISOR, call_estimate
    from temporal_supervisor.supervision.contract.usage import Usage
    from temporal_supervisor.supervision.run.serving_models import Outage
    from workflows.calls.activity_calls import CallFailed, model_call
    from workflows.run_context import RunContext


async def ask(
    context: RunContext, question: Question[C, R], call: C, tokens: int | None = None, *, last: bool = False
) -> R:
    """Returns the reply to a question; the `last` one may use all budget and time left.

    It may take so many `tokens`, by default those of the findings that it shows. Raises SupervisionError if the budget
    has no room for it, the deadline comes first, or it failed for good.
    """
    budget, name = context.state.time_and_budget, call.terms.work
    if workflow.now() >= context.expires_at(last):
        raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came before {name}")
    if tokens is None:  # a prompt holds as many findings as the model has room for
        shown = min(sum(finding.bytes for finding in getattr(call, "findings", [])), context.setup.prompt_bytes)
        tokens = call_estimate(shown + limits.JUDGEMENT_PROMPT_BYTES)
    if last and (left := budget.ledger.for_synthesis.tokens) is not None:
        tokens = min(tokens, max(left, 1))
    # Reserved before the await: other calls and grants are decided while this one is under way.
    if not budget.ledger.reserve_call(tokens, synthesis=last):
        room = f"the budget has no room for {name}, which sets {tokens:,} tokens aside"
        raise SupervisionError(ErrorKind.BUDGET_EXHAUSTED, f"{room}: {budget.spent_line()}")
    work = object()
    try:
        return await _patiently(context, question, call, last, work)
    finally:  # when it is cancelled, too: the reservation would never end
        context.state.models.leave(work)
        budget.ledger.settle_call(tokens, Usage())


async def ask_or_warn(context: RunContext, question: Question[C, R], call: C, lost: str) -> R | None:
    """Returns the reply to a question that a run can do without; None, with the warning `lost`, if there is none."""
    try:
        return await ask(context, question, call)
    except SupervisionError as error:
        context.state.warn(f"{lost}: {error.message}")
        return None


async def judge(
    context: RunContext, question: Literal["select", "conflict"], description: str, findings: list[DependencyRef]
) -> tuple[int | None, str]:
    """Returns the index of the finding that a judge prefers, None without a preference or a judge, and why."""
    if context.leaves_out("judge"):
        return None, ""

    call = JudgeInput(
        **context.call_fields,
        number=context.state.next_number("judge"),
        question=question,
        description=description,
        findings=findings,
    )
    reply = await ask_or_warn(context, JUDGE, call, "there was no judgement")
    if reply is None:
        return None, ""
    if reply.problem:
        context.state.warn(f"a judgement could not be read: {reply.problem}")
    return reply.choice, reply.resolution


async def _patiently(context: RunContext, question: Question[C, R], call: C, last: bool, work: object) -> R:
    """Repeats a call through outages and extended deadlines, with the next model of the chain where one can."""
    state, name = context.state, call.terms.work
    chain = [*context.setup.supervisor_models]
    model = state.models.choose(chain)
    while True:
        await wait_for_model(context, name, model, work, last=last)
        await context.until_resumed()
        # As they are after the waits: limits may have changed, and people may have said more.
        expires_at = context.expires_at(last)
        words = state.steering.words_to_all
        try:
            reply = await model_call(
                question.name,
                _addressed(context, call, model, words),
                question.reply,
                expires_at,
                context.setup.model_queue,
                partial(_book, context, model),
            )
            state.models.answered(model, work)
            context.note_conversation(reply.head, model, len(words))
            if reply.refusal is None:
                return reply
            following = state.models.failed(model, chain, ErrorKind.REFUSED, 0)
            if following == model:
                return reply
            state.trace.note("model_replaced", work=name, model=model, by=following, why="it refused")
            model = following
        except CallFailed as failed:
            problem = failed.problem
            following = state.models.failed(model, chain, problem.type, failed.retry_after)
            if following != model:
                state.trace.note("model_replaced", work=name, model=model, by=following, why=problem.type)
                state.models.leave(work)
                model = following
            elif problem.type is ErrorKind.CIRCUIT_OPEN:
                state.model_away(model, work, problem.message, failed.retry_after, workflow.random().random())
            elif problem.type in ACCOUNT and state.has_finding:
                state.model_away(model, work, problem.message)
            # The end may come long before the deadline, if the provider asked for a longer wait than that.
            elif problem.type is not ErrorKind.TIMEOUT or context.expires_at(last) <= expires_at:
                raise SupervisionError(run_kind(problem.type), problem.message) from failed


def _addressed(context: RunContext, call: C, model: str, words: list[str]) -> C:
    """Returns a call for a model, with the words of people that its conversation does not have."""
    head = getattr(call, "head", None)
    if head is None:
        return call.model_copy(update={"model": model, "steers": words})
    if context.written_by.get(head, model) != model:  # no model continues another one's conversation
        return call.model_copy(update={"model": model, "steers": words, "head": None})
    unheard = words[context.heard.get(head, 0) :]
    return call.model_copy(update={"model": model, "steers": unheard})


def _book(context: RunContext, model: str, usage: Usage) -> None:
    context.state.time_and_budget.ledger.settle_call(0, usage)
    context.state.note_spending(SUPERVISOR, model, usage)


async def wait_for_model(
    context: RunContext, subject: str, model: str, work: object, *, attempt: int | None = None, last: bool = False
) -> None:
    """Returns when `work` may call a model: at once, unless the run knows that it is away.

    Then one piece of work, shown as `subject` (the subtask of an `attempt`, else the supervisor's own work), waits
    for its time and goes first; the others wait until its call was answered. Raises SupervisionError
    `DeadlineExceeded` if the run's time is over first.
    """
    state = context.state
    while (outage := state.models.outage(model)) is not None and outage.first is not None:
        if outage.first is work:
            return
        outage.wait_behind(work)

        def is_my_turn(seen: Outage = outage) -> bool:
            return state.models.outage(model) is not seen or seen.first is None

        await workflow.wait_condition(is_my_turn)
    if outage is None:
        return
    outage.put_first(work)
    resumes = state.steering.resumes
    wait = context.new_wait(
        subject if attempt is None else f"{subject}/{attempt}",
        "provider" if outage.until else "resume",
        subtask_id=None if attempt is None else subject,
        prompt_preview=outage.why,
        model=model,
    )
    await context.wait_for(wait, lambda: state.steering.resumes > resumes, until=lambda: outage.until, last=last)
