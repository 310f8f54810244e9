"""The activity that writes from findings: the answer, a draft of it, or a digest of some findings."""

from typing import Annotated, Any

from pydantic import JsonValue, WithJsonSchema, create_model
from temporalio import activity

from activities.contracts.judgement_contracts import SynthesisInput, SynthesisReply
from activities.model.conversation import Opening
from activities.model.journalled_call import Answered, ModelCalls
from activities.model.port import Json
from activities.model.structured import first_json
from activities.prompts.agent_prompts import Found
from activities.prompts.excerpts import read_text, with_findings
from activities.prompts.judgement_prompts import (
    DIGEST,
    DIGEST_SYSTEM,
    DIGEST_WORDS,
    DRAFT_WORDS,
    FINAL_WORDS,
    JSON_WORDS,
    SYNTHESIS_SYSTEM,
    answer_repair,
    synthesis_request,
)
from activities.replies import answer_schema
from activities.store.stored_plans import read_plan
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.plan import Plan
from supervision.contract.result import Citation, Contradiction
from supervision.run.answer_checks import checked_citations, checked_contradictions
from supervision.text import cut

_KEPT = 100
_WORDS = {"final": FINAL_WORDS, "draft": DRAFT_WORDS, "digest": DIGEST_WORDS}


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
        """One text from the findings; citations that do not hold are dropped here, in code."""
        step = f"synthesis.{input.number}"
        plan = await read_plan(self._calls.store, input.plan_ref)
        schema = await self._schema(input)
        if input.head is None:
            text = await self._request(input, plan, schema)
            opening = await self._opening(input, schema)
            answered = await self._calls.begin(input.run, step, opening, text, input.max_tokens)
        else:
            message = {"role": "user", "content": [{"type": "text", "text": answer_repair(input.problems)}]}
            answered = await self._calls.go_on(input.run, step, input.head, [message], input.max_tokens)
        reply = SynthesisReply(head=answered.head, stop_reason=answered.message.stop_reason, usage=answered.usage)
        text = answered.message.text().strip()
        if reply.stop_reason == "refusal" or not text:
            return reply
        if input.mode == "digest":
            return await self._digested(input, reply, text)
        return await self._answered(input, reply, answered, plan, schema)

    async def _schema(self, input: SynthesisInput) -> Json | None:
        if input.answer_schema_ref is None or input.mode != "final":
            return None
        schema: Json = first_json(await read_text(self._calls.store, input.answer_schema_ref))
        return schema

    async def _request(self, input: SynthesisInput, plan: Plan, schema: Json | None) -> str:
        store, digest = self._calls.store, input.mode == "digest"
        goal = await read_text(store, input.goal_ref)
        draft = (await read_text(store, input.draft_ref))[: limits.CONTEXT_CHARS // 2] if input.draft_ref else None
        last_words = "\n".join([_WORDS[input.mode], *([JSON_WORDS] if schema is not None else [])])

        def write(findings: list[Found]) -> str:
            return synthesis_request(
                goal,
                "" if digest else plan.final_instruction,
                findings,
                [] if digest else input.missing,
                [] if digest else input.open_points,
                input.contradictions,
                draft,
                last_words,
            )

        return await with_findings(store, input.findings, write)

    async def _opening(self, input: SynthesisInput, schema: Json | None) -> Opening:
        if input.mode == "digest":
            return Opening(system=DIGEST_SYSTEM, model=input.model)
        sent: type[Model] = AnswerDraft
        if schema is not None:
            value: Any = Annotated[JsonValue, WithJsonSchema(await answer_schema.sendable(schema, input.run.run_id))]
            sent = create_model("AnswerDraft", __base__=AnswerDraft, answer_json=(value, ...))
        return Opening(system=SYNTHESIS_SYSTEM, model=input.model, output_schema=self._calls.model.output_schema(sent))

    async def _digested(self, input: SynthesisInput, reply: SynthesisReply, text: str) -> SynthesisReply:
        await self._store(input, reply, text)
        return reply

    async def _store(self, input: SynthesisInput, reply: SynthesisReply, answer: str) -> None:
        """Stores the text; of drafts and digests, which are read by reference only, history gets a preview."""
        data = answer.encode("utf-8", "replace")
        inline = limits.ANSWER_INLINE_BYTES if input.mode == "final" else limits.REPLY_PREVIEW_BYTES
        reply.answer, reply.answer_bytes = cut(answer, inline), len(data)
        reply.answer_ref = await self._calls.store.put_output(input.run.run_id, data)

    async def _answered(
        self, input: SynthesisInput, reply: SynthesisReply, answered: Answered, plan: Plan, schema: Json | None
    ) -> SynthesisReply:
        text = answered.message.text().strip()
        fields: Json = {}
        try:
            fields = first_json(text)
            draft = AnswerDraft.model_validate(fields)
        except ValueError as error:
            if reply.stop_reason == "max_tokens":
                return reply
            # A model that answers in prose has answered: the text stands, without citations.
            draft = AnswerDraft(answer=text, confidence=0.0, citations=[], contradictions=[])
            reply.problems = [f"the reply is not the JSON asked for: {cut(str(error), 300)}"] if schema else []
        else:
            reply.confidence = min(1.0, max(0.0, draft.confidence))
            if schema is not None:
                await _take_json(reply, fields, schema, input.run.run_id)
        await self._store(input, reply, draft.answer)
        sound = _sound(input, plan)
        citations = [Citation(claim=cut(c.claim, 300), subtask_ids=c.subtask_ids) for c in draft.citations]
        reply.citations = checked_citations(citations, sound)[:_KEPT]
        contradictions = [
            Contradiction(
                subtask_ids=c.subtask_ids, description=cut(c.description, 600), resolution=cut(c.resolution, 600)
            )
            for c in draft.contradictions
        ]
        reply.contradictions = checked_contradictions(contradictions, sound)[: limits.CONFLICTS]
        return reply


async def _take_json(reply: SynthesisReply, fields: Json, schema: Json, run_id: str) -> None:
    if "answer_json" not in fields:
        reply.problems = ["answer_json is missing"]
        return
    value = await answer_schema.value_of(schema, fields["answer_json"], run_id)
    reply.problems = await answer_schema.problems(schema, value, run_id)
    reply.answer_json = None if reply.problems else value


def _sound(input: SynthesisInput, plan: Plan) -> set[str]:
    """The subtasks that may be cited: a draft and digests rest on findings that are not shown themselves."""
    shown = {finding.subtask_id for finding in input.findings if finding.complete}
    planned = {subtask.id for subtask in plan.subtasks}
    if input.draft_ref is None and not any(finding.role == DIGEST for finding in input.findings):
        return shown & planned
    unfinished = {finding.subtask_id for finding in input.findings if not finding.complete}
    return planned - unfinished - {gap.subtask_id for gap in input.missing}
