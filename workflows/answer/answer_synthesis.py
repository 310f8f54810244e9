"""The synthesis: a text written from findings, or from digests where these are too many."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import DependencyRef
    from activities.questions.synthesis import (
        SYNTHESIS,
        SynthesisInput,
        SynthesisReply,
        better_answer,
    )
    from temporal_supervisor.supervision.agent.finding_budget import groups
    from temporal_supervisor.supervision.agent.turn_rules import CUT, more_room
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls.supervisor_model import SupervisorModel

EMPTY = "the model gave an empty answer"
_REDUCE_BYTES = (
    40_000  # of findings in a prompt when the plan reduces: ~10k tokens, a dozen of them
)


class AnswerSynthesis:
    """Has the model write the answer, in several steps if the findings are too many."""

    def __init__(self, state: RunState, model: SupervisorModel, prompt_bytes: int) -> None:
        self._state = state
        self._model = model
        self._prompt_bytes = prompt_bytes

    async def write(self, call: SynthesisInput) -> SynthesisReply:
        """Returns the answer, the better one of two if the first has faults.

        It is asked for once more if its JSON does not fit the schema, or it claims something that
        no finding has. Raises SupervisionError if there is none.
        """
        await self._reduce(call)
        first = await self._reply(call)
        problems = first.to_fix
        if not problems:
            return first
        self._state.trace.note(
            "answer_returned",
            unsupported=[*first.unsupported_claims],
            problems=len(first.problems),
        )
        try:
            second = await self._reply(call.model_copy(update={"problems": problems}))
        except SupervisionError:
            return first  # an answer with faults, named as such, is better than none

        kept = better_answer(first, second)
        self._state.trace.note("answer_kept", which="first" if kept is first else "second")
        return kept

    async def _reduce(self, call: SynthesisInput) -> None:
        """Condenses the findings of a call by groups, in rounds, until all fit into one prompt.

        What a digest claims and no finding has is doubtful.
        """
        room = self._prompt_bytes
        if self._state.plan.aggregation == "reduce":
            room = min(room, _REDUCE_BYTES)
        while sum(finding.bytes for finding in call.findings) > room and len(call.findings) > 1:
            condensed = []
            for group in groups([finding.bytes for finding in call.findings], room):
                members = [call.findings[index] for index in group]
                if len(members) == 1:
                    condensed += members
                else:
                    condensed.append(await self._digest(members, call))
            if len(condensed) >= len(call.findings):
                return
            call.findings = condensed

    async def _digest(self, members: list[DependencyRef], call: SynthesisInput) -> DependencyRef:
        """Returns a digest of some findings of a call, which gets its doubtful claims."""
        question = SynthesisInput(
            **self._model.call_fields,
            findings=members,
            contradictions=call.contradictions,
            mode="digest",
        )
        reply = await self._reply(question)
        doubtful = [*call.doubtful, *(item.text for item in reply.answer.unsupported)]
        call.doubtful = doubtful[: limits.UNSUPPORTED_LISTED]
        return DependencyRef(
            subtask_id=members[0].subtask_id,
            role="digest",
            text_ref=reply.answer.ref or "",
            bytes=reply.bytes,
        )

    async def _reply(self, call: SynthesisInput) -> SynthesisReply:
        """Returns a reply with a whole text, or with JSON that fits the schema.

        One that was cut, or has no words, is asked for again with more room.
        """
        state = self._state
        own_limit = state.request.max_tokens
        call.max_tokens = min(call.max_tokens, own_limit or call.max_tokens)
        for _ in range(limits.CUT_RETRIES + 1):
            call = call.model_copy(update={"number": state.next_number("synthesis")})
            shown = {"findings": len(call.findings), "mode": call.mode}
            state.trace.note("synthesis_started", number=call.number, **shown)
            reply = await self._model.ask(SYNTHESIS, call, last=True)
            if reply.answer.text or reply.problems:
                return reply
            if reply.refusal is not None:
                why = "the model refused to write the answer"
                raise SupervisionError(ErrorKind.PROVIDER_REJECTED, why)
            room = more_room(call.max_tokens, own_limit)
            if room == call.max_tokens:
                # The user's own limit: the same words again would be cut again.
                too_long = f"The answer was cut off after {room:,} tokens. Write a shorter one."
                call.problems = [too_long]
            call.max_tokens = room
        if reply.answer.as_json is not None:
            return reply
        why = "the answer was cut" if reply.stop_reason in CUT else EMPTY
        raise SupervisionError(ErrorKind.PROVIDER_REJECTED, why)
