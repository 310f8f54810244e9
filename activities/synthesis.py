"""The activity that writes from findings: the answer, a draft of it, or a digest of some findings."""

import asyncio
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import JsonValue, WithJsonSchema, create_model
from temporalio import activity

from activities.contracts.judgement_contracts import SynthesisInput, SynthesisReply
from activities.model.conversation import Opening
from activities.model.journalled_call import Answered, CallName, CallOptions, ModelCalls
from activities.model.port import Json
from activities.model.prompt_fit import PromptWriter
from activities.model.structured import first_json
from activities.prompts.judgement_prompts import (
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
from activities.store.reading import FindingExcerpt, list_bytes, read_plan, read_text, read_texts, with_findings
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.plan import Plan
from supervision.contract.result import Citation, Contradiction
from supervision.grounding.citations import CitedFindings, marked_citations, with_valid_marks
from supervision.grounding.support import Source, unsupported_texts
from supervision.prompt_marks import DIGEST
from supervision.results.answer import checked_contradictions
from supervision.text import cut

_LAST_WORDS = {"final": FINAL_WORDS, "draft": DRAFT_WORDS, "digest": DIGEST_WORDS}


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
        self._store = calls.store

    @activity.defn
    async def synthesize(self, call: SynthesisInput) -> SynthesisReply:
        """Returns one text from the findings; citations that do not hold are dropped here, in code."""
        plan = await read_plan(self._store, call.plan_ref)
        schema = await self._schema(call)
        answered = await self._ask(call, plan, schema)
        reply = SynthesisReply(head=answered.head, stop_reason=answered.message.stop_reason, usage=answered.usage)
        text = answered.message.text().strip()
        if reply.stop_reason == "refusal" or not text:
            return reply
        cited = await self._cited(call)
        if call.mode == "digest":
            await self._keep(call, reply, text)
        else:
            text = await self._read_answer(call, reply, text, plan, schema, cited)
        reply.unsupported = await self._unsupported(call, plan, "\n".join([text, *_leaves(reply.answer_json)]), cited)
        return reply

    async def _cited(self, call: SynthesisInput) -> CitedFindings:
        texts = await read_texts(self._store, [finding.text_ref for finding in call.findings])
        found = list(zip(call.findings, texts, strict=True))
        others = [text for finding, text in found if finding.role == DIGEST]
        others += [await read_text(self._store, call.draft_ref)] if call.draft_ref else []
        return CitedFindings({ref.subtask_id: text for ref, text in found if ref.role != DIGEST}, others)

    async def _unsupported(self, call: SynthesisInput, plan: Plan, text: str, cited: CitedFindings) -> list[str]:
        """Returns what the text claims and none of its findings has, or not the one that it cites.

        The goal and the plan may be repeated.
        """
        given = [await read_text(self._store, call.goal_ref), *(subtask.description for subtask in plan.subtasks)]
        settled = [f"{item.description}\n{item.resolution}" for item in call.contradictions]

        def look_up() -> list[str]:
            sources = [Source(ground) for ground in (*given, *cited.texts, *settled)]
            miscited = cited.miscited(text, _citable(call, plan), given)
            return unsupported_texts(text, sources, [*call.doubtful, *miscited])

        return await asyncio.to_thread(look_up)

    async def _schema(self, call: SynthesisInput) -> Json | None:
        if call.answer_schema_ref is None or call.mode != "final":
            return None
        schema: Json = first_json(await read_text(self._store, call.answer_schema_ref))
        return schema

    async def _ask(self, call: SynthesisInput, plan: Plan, schema: Json | None) -> Answered:
        name, options = CallName.of(call, f"synthesis.{call.number}"), CallOptions(call.max_tokens)
        text, opening = self._request(call, plan, schema), self._opening(call, schema)
        if call.head is None:
            return await self._calls.begin(name, opening, text, options)
        words = answer_repair(call.problems)
        return await self._calls.correct(name, call.head, words, opening, text, options)

    def _request(self, call: SynthesisInput, plan: Plan, schema: Json | None) -> PromptWriter:
        """Returns what writes the prompt: it reads its parts when it is written, which a repair seldom needs."""
        last_words = "\n".join([_LAST_WORDS[call.mode], *([JSON_WORDS] if schema is not None else [])])
        digest = call.mode == "digest"

        async def within(tokens: int) -> str:
            goal = await read_text(self._store, call.goal_ref)
            whole = await read_text(self._store, call.draft_ref) if call.draft_ref else None
            draft = None if whole is None else cut(whole, int(tokens * limits.CHARS_PER_TOKEN / 2))

            def write(findings: list[FindingExcerpt]) -> str:
                return synthesis_request(
                    goal,
                    None if digest else plan,
                    findings,
                    [] if digest else call.missing,
                    [] if digest else call.open_points,
                    call.contradictions,
                    draft,
                    last_words,
                    room=list_bytes(tokens),
                )

            return await with_findings(self._store, call.findings, write, tokens)

        return within

    def _opening(self, call: SynthesisInput, schema: Json | None) -> Opening:
        if call.mode == "digest":
            return Opening(system=DIGEST_SYSTEM, model=call.model, effort=call.effort)
        form: type[Model] = AnswerDraft
        if schema is not None:
            value: Any = Annotated[JsonValue, WithJsonSchema(answer_schema.sendable(schema))]
            form = create_model("AnswerDraft", __base__=AnswerDraft, answer_json=(value, ...))
        return Opening(
            system=SYNTHESIS_SYSTEM,
            model=call.model,
            effort=call.effort,
            output_schema=self._calls.model.output_schema(form),
        )

    async def _read_answer(
        self,
        call: SynthesisInput,
        reply: SynthesisReply,
        text: str,
        plan: Plan,
        schema: Json | None,
        cited: CitedFindings,
    ) -> str:
        """Writes what the model answered into the reply; returns the text of the answer."""
        try:
            fields: Json = first_json(text)
            draft = AnswerDraft.model_validate(fields)
        except ValueError as error:
            if reply.stop_reason == "max_tokens":
                return ""
            # A model that answers in prose has answered: the text stands, without citations.
            draft = AnswerDraft(answer=text, confidence=0.0, citations=[], contradictions=[])
            if schema is not None:
                reply.problems = [f"the reply is not the JSON asked for: {cut(str(error), limits.SENTENCE_BYTES)}"]
        else:
            reply.confidence = min(1.0, max(0.0, draft.confidence))
            if schema is not None:
                await _take_json(reply, fields, schema, call.run.run_id)
        citable = _citable(call, plan)
        answer = with_valid_marks(draft.answer, {subtask.id for subtask in plan.subtasks}, citable)
        if answer.strip():
            await self._keep(call, reply, answer)
        await asyncio.to_thread(_take_references, reply, draft, answer, citable, cited)
        return answer

    async def _keep(self, call: SynthesisInput, reply: SynthesisReply, answer: str) -> None:
        """Stores the text; of drafts and digests, which are read by reference only, history gets a preview."""
        data = answer.encode("utf-8", "replace")
        inline = limits.ANSWER_INLINE_BYTES if call.mode == "final" else limits.REPLY_PREVIEW_BYTES
        reply.answer, reply.answer_bytes = cut(answer, inline), len(data)
        reply.answer_ref = await self._store.put_output(call.run.run_id, data)


def _leaves(value: JsonValue) -> Iterator[str]:
    """Yields the texts and figures of JSON, each to be looked up as if it stood in the answer."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


async def _take_json(reply: SynthesisReply, fields: Json, schema: Json, run_id: str) -> None:
    if "answer_json" not in fields:
        reply.problems = ["answer_json is missing"]
        return
    value = answer_schema.value_of(schema, fields["answer_json"])
    reply.problems = await answer_schema.problems(schema, value, run_id)
    reply.answer_json = None if reply.problems else value


def _take_references(
    reply: SynthesisReply, draft: AnswerDraft, answer: str, citable: set[str], cited: CitedFindings
) -> None:
    listed = [Citation(claim=cut(c.claim, limits.SENTENCE_BYTES), subtask_ids=c.subtask_ids) for c in draft.citations]
    citations = cited.holding(listed, citable) or cited.holding(marked_citations(answer, citable), citable)
    contradictions = [
        Contradiction(
            subtask_ids=item.subtask_ids,
            description=cut(item.description, limits.PARAGRAPH_BYTES),
            resolution=cut(item.resolution, limits.PARAGRAPH_BYTES),
        )
        for item in draft.contradictions
    ]
    reply.citations = citations[: limits.CITATIONS]
    reply.contradictions = checked_contradictions(contradictions, citable)[: limits.CONFLICTS]


def _citable(call: SynthesisInput, plan: Plan) -> set[str]:
    """Returns the subtasks that may be cited: a draft and digests stand for findings that are not in the prompt."""
    complete = {finding.subtask_id for finding in call.findings if finding.complete}
    planned = {subtask.id for subtask in plan.subtasks}
    if call.draft_ref is None and not any(finding.role == DIGEST for finding in call.findings):
        return complete & planned
    incomplete = {finding.subtask_id for finding in call.findings if not finding.complete}
    return planned - incomplete - {gap.subtask_id for gap in call.missing}
