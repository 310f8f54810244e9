"""The activity that writes the answer from the findings."""

from pydantic import ValidationError
from temporalio import activity

from activities.context import read_findings, read_text
from activities.contracts import SynthesisInput, SynthesisReply
from activities.conversation import Opening
from activities.model_call import Answered, ModelCalls
from activities.prompts import SYNTHESIS_SYSTEM, synthesis_request
from activities.structured import first_json
from supervision import limits
from supervision.base import Model
from supervision.honesty import checked_citations, checked_contradictions
from supervision.plan import Plan
from supervision.result import Citation, Contradiction
from supervision.text import cut

_KEPT = 100


class CitationDraft(Model):
    """A citation as the model writes it."""

    claim: str
    subtask_ids: list[str]


class ContradictionDraft(Model):
    """A contradiction as the model writes it."""

    subtask_ids: list[str]
    description: str
    resolution: str


class AnswerDraft(Model):
    """The answer as the model writes it."""

    answer: str
    confidence: float
    citations: list[CitationDraft]
    contradictions: list[ContradictionDraft]


class SynthesisActivities:
    """Synthesis, with the model of this process."""

    def __init__(self, calls: ModelCalls) -> None:
        self._calls = calls

    @activity.defn
    async def synthesize(self, input: SynthesisInput) -> SynthesisReply:
        """One answer from the findings; citations that do not hold are dropped here, in code."""
        store = self._calls.store
        plan = Plan.model_validate_json(await store.get(input.plan_ref))
        text = synthesis_request(
            await read_text(store, input.goal_ref),
            plan.final_instruction,
            await read_findings(store, input.findings),
            input.missing,
        )
        opening = Opening(
            system=SYNTHESIS_SYSTEM,
            model=input.model,
            tools=[],
            output_schema=self._calls.model.output_schema(AnswerDraft),
        )
        answered = await self._calls.begin(input.run, f"synthesis.{input.number}", opening, text, input.max_tokens)
        return await self._reply(input, answered)

    async def _reply(self, input: SynthesisInput, answered: Answered) -> SynthesisReply:
        reply = SynthesisReply(head=answered.head, stop_reason=answered.message.stop_reason, usage=answered.usage)
        text = answered.message.text().strip()
        if reply.stop_reason == "refusal" or not text:
            return reply
        completed = {finding.subtask_id for finding in input.findings if finding.complete}
        try:
            draft = AnswerDraft.model_validate(first_json(text))
        except (ValueError, ValidationError):
            if reply.stop_reason == "max_tokens":
                return reply
            # A model that answers in prose has answered: the text stands, without citations.
            draft = AnswerDraft(answer=text, confidence=0.0, citations=[], contradictions=[])
        else:
            reply.confidence = min(1.0, max(0.0, draft.confidence))
        reply.answer = cut(draft.answer, limits.ANSWER_INLINE_BYTES)
        reply.answer_ref = await self._calls.store.put_output(input.run.run_id, draft.answer.encode("utf-8", "replace"))
        citations = [Citation(claim=cut(c.claim, 300), subtask_ids=c.subtask_ids) for c in draft.citations]
        reply.citations = checked_citations(citations, completed)[:_KEPT]
        contradictions = [
            Contradiction(
                subtask_ids=c.subtask_ids, description=cut(c.description, 600), resolution=cut(c.resolution, 600)
            )
            for c in draft.contradictions
        ]
        reply.contradictions = checked_contradictions(contradictions, completed)[:20]
        return reply
