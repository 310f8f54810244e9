"""The synthesis: a text written from findings, of which the prompt has room for all or for digests of them."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import DependencyRef
    from activities.questions.synthesis import SYNTHESIS, SynthesisInput, SynthesisReply, better_answer
    from temporal_supervisor.supervision.agent.finding_budget import groups
    from temporal_supervisor.supervision.agent.turn_rules import CUT, more_room
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from workflows.calls.asking import ask
    from workflows.run_context import RunContext

EMPTY = "the model gave an empty answer"
_REDUCE_BYTES = 40_000  # of findings in one prompt when the plan asks for reduction: ~10k tokens, a dozen of them


async def synthesized(context: RunContext, call: SynthesisInput) -> SynthesisReply:
    """Returns the answer; asked for once more if its JSON does not fit the schema, or it claims what no finding has.

    Of the two the better one counts. Raises SupervisionError if there is none.
    """
    await _reduce(context, call)
    first = await _call(context, call)
    if not (problems := first.to_fix):
        return first
    context.state.trace.note("answer_returned", unsupported=[*first.unsupported_claims], problems=len(first.problems))
    try:
        second = await _call(context, call.model_copy(update={"problems": problems}))
    except SupervisionError:
        return first  # an answer with faults, named as such, is better than none

    kept = better_answer(first, second)
    context.state.trace.note("answer_kept", which="first" if kept is first else "second")
    return kept


async def _reduce(context: RunContext, call: SynthesisInput) -> None:
    """Condenses the findings of a call by groups, in rounds, until all fit into one prompt.

    What a digest claims and no finding has is doubtful.
    """
    room = context.setup.prompt_bytes
    if context.state.plan.aggregation == "reduce":
        room = min(room, _REDUCE_BYTES)
    while sum(finding.bytes for finding in call.findings) > room and len(call.findings) > 1:
        condensed = []
        for group in groups([finding.bytes for finding in call.findings], room):
            members = [call.findings[index] for index in group]
            if len(members) == 1:
                condensed += members
                continue
            digest = SynthesisInput(
                **context.call_fields, findings=members, contradictions=call.contradictions, mode="digest"
            )
            reply = await _call(context, digest)
            doubtful = [*call.doubtful, *(item.text for item in reply.answer.unsupported)]
            call.doubtful = doubtful[: limits.UNSUPPORTED_LISTED]
            condensed.append(
                DependencyRef(
                    subtask_id=members[0].subtask_id, role="digest", text_ref=reply.answer.ref or "", bytes=reply.bytes
                )
            )
        if len(condensed) >= len(call.findings):
            return
        call.findings = condensed


async def _call(context: RunContext, call: SynthesisInput) -> SynthesisReply:
    """Returns a reply with a whole text, or with JSON that fits the schema.

    One that was cut, or has no words, is asked for again with more room.
    """
    state = context.state
    call.max_tokens = min(call.max_tokens, state.request.max_tokens or call.max_tokens)
    for _ in range(limits.CUT_RETRIES + 1):
        call = call.model_copy(update={"number": state.next_number("synthesis")})
        state.trace.note("synthesis_started", number=call.number, findings=len(call.findings), mode=call.mode)
        reply = await ask(context, SYNTHESIS, call, last=True)
        if reply.answer.text or reply.problems:
            return reply
        if reply.refusal is not None:
            raise SupervisionError(ErrorKind.PROVIDER_REJECTED, "the model refused to write the answer")
        room = more_room(call.max_tokens, state.request.max_tokens)
        if room == call.max_tokens:  # the user's own limit: the same words again would be cut again
            call.problems = [f"The answer was cut off after {room:,} tokens. Write a shorter one."]
        call.max_tokens = room
    if reply.answer.as_json is not None:
        return reply
    why = "the answer was cut" if reply.stop_reason in CUT else EMPTY
    raise SupervisionError(ErrorKind.PROVIDER_REJECTED, why)
