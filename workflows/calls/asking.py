"""A supervisor's questions to its model: within budget and time, through outages, to the next model of its chain."""

from functools import partial

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.questions.question import C, Question, R
    from supervision.base.errors import ACCOUNT, ErrorKind, SupervisionError, run_kind
    from supervision.budget.ledger import SUPERVISOR
    from supervision.contract.usage import Usage
    from workflows.calls.activity_calls import answer_to
    from workflows.calls.failures import CallFailed
    from workflows.run_context import RunContext


async def ask(context: RunContext, question: Question[C, R], call: C, tokens: int, *, last: bool = False) -> R:
    """Returns the reply to a question that may take so many `tokens`; the `last` one may use all budget and time left.

    Raises SupervisionError if the budget has no room for it, the deadline comes first, or it failed for good.
    """
    budget, name = context.state.time_and_budget, call.terms.work
    if workflow.now() >= context.expires_at(last):
        raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came before {name}")
    if last and (left := budget.ledger.for_synthesis.tokens) is not None:
        tokens = min(tokens, max(left, 1))
    # Reserved before the await: other calls and grants are decided while this one is under way.
    while not budget.ledger.reserve_call(tokens, synthesis=last):
        if not await context.more_budget(tokens):
            room = f"the budget has no room for {name}, which sets {tokens:,} tokens aside"
            raise SupervisionError(ErrorKind.BUDGET_EXHAUSTED, f"{room}: {budget.spent_line()}")
    work = object()
    try:
        return await _patiently(context, question, call, last, work)
    finally:  # when it is cancelled, too: the reservation would never end
        budget.ledger.settle_call(tokens, Usage())
        context.leave(work)


async def ask_or_warn(context: RunContext, question: Question[C, R], call: C, tokens: int, lost: str) -> R | None:
    """Returns the reply to a question that a run can do without; None, with the warning `lost`, if there is none."""
    try:
        return await ask(context, question, call, tokens)
    except SupervisionError as error:
        context.state.warn(f"{lost}: {error.message}")
        return None


async def _patiently(context: RunContext, question: Question[C, R], call: C, last: bool, work: object) -> R:
    """Repeats a call through outages and extended deadlines, with the next model of the chain where one can."""
    state, name = context.state, call.terms.work
    model = state.models.choose(context.models)
    while True:
        await context.wait_for_model(name, model, work, last=last)
        await context.until_resumed()
        expires_at, heard = context.expires_at(last), len(state.steering.words_to_all)
        try:
            addressed, book = _addressed(context, call, model), partial(_book, context, model)
            reply = await answer_to(question, addressed, expires_at, context.setup.model_queue, book)
            context.model_answered(model, work)
            context.written_by[reply.head] = model
            context.heard[reply.head] = heard
            following = state.models.following(context.models, model)
            if reply.refusal is None or following is None:
                return reply
            state.trace.note("model_replaced", work=name, model=model, by=following, why="it refused")
            model = following
        except CallFailed as failed:
            problem = failed.problem
            following = state.models.failed(model, context.models, problem.type, failed.retry_after)
            if following != model:
                state.trace.note("model_replaced", work=name, model=model, by=following, why=problem.type)
                context.leave(work)
                model = following
            elif problem.type is ErrorKind.CIRCUIT_OPEN:
                context.model_away(model, work, problem.message, failed.retry_after)
            elif problem.type in ACCOUNT and state.has_finding:
                context.model_away(model, work, problem.message)
            # The end may come long before the deadline, if the provider asked for a longer wait than that.
            elif problem.type is not ErrorKind.TIMEOUT or context.expires_at(last) <= expires_at:
                raise SupervisionError(run_kind(problem.type), problem.message) from failed


def _book(context: RunContext, model: str, usage: Usage) -> None:
    context.state.time_and_budget.ledger.settle_call(0, usage)
    context.state.note_spending(SUPERVISOR, model, usage)


def _addressed(context: RunContext, call: C, model: str) -> C:
    """Returns the call as that model gets it, with what people said; it continues no other model's conversation."""
    words = context.state.steering.words_to_all
    changes: dict[str, str | list[str] | None] = {"model": model, "steers": words}
    head = getattr(call, "head", None)
    if head is not None and context.written_by.get(head, model) != model:
        changes["head"] = None
    elif head is not None:
        changes["steers"] = words[context.heard.get(head, 0) :]
    return call.model_copy(update=changes)
