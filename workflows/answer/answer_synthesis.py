"""The synthesis: a text written from the findings, or from digests where there are too many."""

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
# Of findings in a prompt when the plan reduces: ~10k tokens, a dozen of them.
_REDUCE_BYTES = 40_000


class AnswerSynthesis:
    """Has the model write the answer, in several steps if one prompt cannot hold the findings."""

    def __init__(self, state: RunState, model: SupervisorModel, prompt_bytes: int) -> None:
        self._state = state
        self._model = model
        self._prompt_bytes = prompt_bytes

    async def write(self, call: SynthesisInput) -> SynthesisReply:
        """Returns the answer: the better of two if the first one has faults.

        The model is asked a second time if its JSON does not fit the schema, or if it claims
        something that no finding supports. Raises SupervisionError if there is no answer.
        """
        call = await self._reduced(call)
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

    async def _reduced(self, call: SynthesisInput) -> SynthesisInput:
        """Returns a call whose findings, condensed group by group, all fit into one prompt.

        A claim that is in a digest but in no finding becomes doubtful.
        """
        room = self._prompt_bytes
        if self._state.plan.aggregation == "reduce":
            room = min(room, _REDUCE_BYTES)
        while sum(finding.bytes for finding in call.findings) > room and len(call.findings) > 1:
            condensed: list[DependencyRef] = []
            doubtful = call.doubtful
            for group in groups([finding.bytes for finding in call.findings], room):
                members = [call.findings[index] for index in group]
                if len(members) == 1:
                    condensed += members
                    continue
                digest, unsupported = await self._digest(members, call)
                condensed.append(digest)
                doubtful = [*doubtful, *unsupported][: limits.UNSUPPORTED_LISTED]
            if len(condensed) >= len(call.findings):
                return call
            call = call.model_copy(update={"findings": condensed, "doubtful": doubtful})
        return call

    async def _digest(
        self, members: list[DependencyRef], call: SynthesisInput
    ) -> tuple[DependencyRef, list[str]]:
        """Returns a digest of some findings of a call, and its unsupported claims."""
        question = SynthesisInput(
            **self._model.call_fields,
            findings=members,
            contradictions=call.contradictions,
            mode="digest",
        )
        reply = await self._reply(question)
        digest = DependencyRef(
            subtask_id=members[0].subtask_id,
            role="digest",
            text_ref=reply.answer.ref or "",
            bytes=reply.bytes,
        )
        return digest, [item.text for item in reply.answer.unsupported]

    async def _reply(self, call: SynthesisInput) -> SynthesisReply:
        """Returns a reply with a complete text, or with JSON that fits the schema.

        A reply that was cut off or has no text is requested again with more room. Raises
        SupervisionError if the model refuses, or if the last reply is incomplete, too.
        """
        state = self._state
        own_limit = state.request.max_tokens
        room = min(call.max_tokens, own_limit or call.max_tokens)
        problems = call.problems
        for _ in range(limits.CUT_RETRIES + 1):
            number = state.next_number("synthesis")
            asked = {"number": number, "max_tokens": room, "problems": problems}
            call = call.model_copy(update=asked)
            shown = {"findings": len(call.findings), "mode": call.mode}
            state.trace.note("synthesis_started", number=number, **shown)
            reply = await self._model.reply_to(SYNTHESIS, call, last=True)
            if reply.answer.text or reply.problems:
                return reply
            if reply.refusal is not None:
                why = "the model refused to write the answer"
                raise SupervisionError(ErrorKind.PROVIDER_REJECTED, why)
            former, room = room, more_room(room, own_limit)
            if room == former:
                # The user's own limit: the same words again would be cut again.
                too_long = f"The answer was cut off after {room:,} tokens. Write a shorter one."
                problems = [too_long]
        if reply.answer.as_json is not None:
            return reply
        why = "the answer was cut" if reply.stop_reason in CUT else EMPTY
        raise SupervisionError(ErrorKind.PROVIDER_REJECTED, why)
