"""The question that writes from findings: the answer, a draft of it, or a digest of some."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, WithJsonSchema, create_model
from pydantic.json_schema import SkipJsonSchema

from activities.contracts.run_contracts import (
    CallTerms,
    FindingRefs,
    SupervisorCall,
    SupervisorReply,
)
from activities.model.journalled_call import Answered
from activities.prompts.prompt_blocks import (
    DATA_RULE,
    contradiction_block,
    described,
    findings_block,
    gap_blocks,
    repair,
    tag,
)
from activities.questions.question import Desk, Question, goal_of_people, read_json, send_to_model
from activities.replies import answer_schema
from activities.store.reading import (
    FindingExcerpt,
    first_of,
    list_bytes,
    read_plan,
    read_text,
    read_texts,
    with_findings,
)
from temporal_supervisor.supervision.agent.agent_tools import share_of
from temporal_supervisor.supervision.agent.turn_rules import CUT
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import (
    DIGEST,
    DRAFT,
    GOAL,
    MISSING,
    PLAN_REASONING,
)
from temporal_supervisor.supervision.base.text import cut, size
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.result import Contradiction, Gap, Unsupported
from temporal_supervisor.supervision.grounding.answer_fields import field_claims
from temporal_supervisor.supervision.grounding.citations import CitedFindings, with_valid_marks
from temporal_supervisor.supervision.grounding.parts_left_out import parts_left_out
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check, found_nowhere
from temporal_supervisor.supervision.replies.loose_json import ALL_JSON
from temporal_supervisor.supervision.results.answer import ANSWER, Answer
from temporal_supervisor.supervision.results.shown_links import (
    addresses_in,
    without_images,
    without_links,
)


class SynthesisInput(SupervisorCall):
    """Findings to write the answer from, the gaps, and the points that a review left open.

    `problems` are those of an answer that went back, which is not shown again. `doubtful` are
    claims of digests and drafts that no finding has. A `digest` condenses some findings for a later
    synthesis, which reads a `draft` at `draft_ref`.
    """

    findings: FindingRefs
    missing: list[Gap] = []
    open_points: list[Gap] = []
    contradictions: list[Contradiction] = []
    mode: Literal["final", "draft", "digest"] = "final"
    draft_ref: str | None = None
    answer_schema_ref: str | None = None
    problems: list[str] = []
    doubtful: list[str] = []
    number: int = 1
    max_tokens: int = limits.SYNTHESIS_MAX_TOKENS

    @property
    def terms(self) -> CallTerms:
        """Names the step after the number of the synthesis."""
        product = {"final": "the answer", "draft": "a draft", "digest": "a digest"}[self.mode]
        summary = f"{product} from {len(self.findings)} findings"
        return CallTerms(f"synthesis.{self.number}", product, summary, self.max_tokens)


_FIX_PART = "Answer it from the findings, or say that they do not have it"
_FIX_CLAIMS = """\
Take each as it stands in a finding and cite that, write its calculation beside it, or leave it \
out"""


class SynthesisReply(SupervisorReply):
    """The answer, and the `bytes` of its whole text; `problems` say why its JSON cannot be used.

    `supported` counts the claims of its text that are in findings, or in the goal. `left_out` has a
    sentence for each part of the goal that it does not answer.
    """

    answer: Answer = Answer()
    bytes: int = 0
    supported: int = 0
    left_out: list[str] = []
    contradictions: list[Contradiction] = []
    problems: list[str] = []
    stop_reason: str

    @property
    def unsupported_claims(self) -> list[str]:
        """The claims that no finding supports, as the author of the answer reads them."""
        claims = []
        for item in self.answer.unsupported:
            claims.append(item.text if item.where == ANSWER else f"{item.text} ({item.where})")
        return claims

    @property
    def to_fix(self) -> list[str]:
        """Everything with which the answer goes back to its author; empty if it is good."""
        faults = [*self.problems]
        for item in self.left_out:
            faults.append(f"{item}. {_FIX_PART}")
        claims = self.unsupported_claims
        if claims:
            shown = "; ".join(claims[: limits.UNSUPPORTED_SHOWN])
            said = f"these are in no finding, or not in the finding cited beside them: {shown}"
            faults.append(f"{said}. {_FIX_CLAIMS}")
        return faults


class AnswerDraft(Model):
    """The answer as the model writes it."""

    answer: str
    confidence: float | None = None
    contradictions: list[Contradiction] = []
    answer_json: SkipJsonSchema[JsonValue] = None  # asked for by the form of the user's schema


class ShortAnswerDraft(Model):
    """The answer that a model with a small window is asked for."""

    answer: str = Field(description="The answer in Markdown.")


SYNTHESIS_SYSTEM = f"""You supervise worker agents. From their findings you write the answer to \
the goal.

Write for the person who asked, who knows nothing of subtasks or agents. answer is Markdown:

- Begin with the answer itself in one to three sentences. Then give what supports it, in the form, \
length and language that the goal asks for. If the goal asks for none, use its language, and no \
headings in a short answer.
- Use only what the findings say, each figure with its unit and period as it stands there (you may \
round it): a program compares them. If a sum, difference or share that the goal asks for is in no \
finding, write its calculation beside it, as in CHANGE (A − B): the program checks that, too.
- After each statement put the ids of the findings that support it, such as [t2] or [t1, t3]. A \
program turns them into references.
- Where a finding names its source (a document, table or URL), name the source once in the \
sentence. Of what was fetched from the web say on which day, and how old a figure was by then if \
it says so.
- Where findings disagree, are partial, or have a limitation that changes what the reader may \
conclude, say so where it matters, in half a sentence.
- A program adds a list of what is missing below your text. Do not write one.

contradictions lists each disagreement between findings, and how you settled it. confidence, from \
0 to 1, is how likely a careful reader with all sources would agree with the complete answer; it \
is not above that of the findings.

{DATA_RULE}"""

SHORT_SYNTHESIS_SYSTEM = f"""From the findings of worker agents you write the answer to the goal, \
for the person who asked.

- Begin with the answer itself, in one to three sentences, in the language of the goal.
- Use only what the findings say. Each figure, with its unit and period, stands as it stands \
there: a program compares them. Compute nothing.
- After each statement put the id of its finding in square brackets, such as [t1].
- Where a finding does not answer its subtask, say so.

{DATA_RULE}"""

DIGEST_SYSTEM = f"""You supervise worker agents. There are more findings than one prompt can hold. \
Condense some of them for the author of the answer.

- Keep every figure with its unit, period and source, and every limitation. Drop repetition and \
wording.
- After each statement put the ids of the findings that support it in square brackets, such as [t3].
- Add nothing of your own. Where findings disagree, keep both sides with their ids.
- Reply with the condensed text only.

{DATA_RULE}"""


def better_answer(first: SynthesisReply, second: SynthesisReply) -> SynthesisReply:
    """Returns the second answer, unless it lost what was right in the first, which went back.

    JSON that fits counts most, then the supported claims, then the parts of the goal that are
    answered, then how few claims have no support.
    """
    fits = bool(first.problems) - bool(second.problems)
    gained = second.supported - first.supported
    answered = len(first.left_out) - len(second.left_out)
    cleared = len(first.unsupported_claims) - len(second.unsupported_claims)
    differences = [each for each in (fits, gained, answered, cleared) if each]
    return first if differences and differences[0] < 0 else second


def synthesis_request(
    call: SynthesisInput,
    goal: str,
    plan: Plan,
    draft: str | None,
    findings: list[FindingExcerpt],
    room: int = limits.PROMPT_LIST_BYTES,
) -> str:
    """Returns the prompt of a synthesis.

    `draft` is an answer from earlier findings, which are not repeated.
    """
    parts = [tag(GOAL, goal)]
    if call.mode != "digest":
        if plan.final_instruction.strip():
            parts.append(tag("final_instruction", plan.final_instruction))
        if plan.reasoning.strip():
            parts.append(tag(PLAN_REASONING, plan.reasoning))
        parts.append(tag("subtasks", described(plan.subtasks, room)))
    if draft is not None:
        parts += [tag(DRAFT, draft), _DRAFT_WORDS]

    parts.append(findings_block(findings))
    if any(finding.role == DIGEST for finding in findings):
        parts.append(_DIGEST_WORDS)
    parts += gap_blocks(MISSING, call.missing, room)
    if call.open_points:
        parts += [_OPEN_POINT_WORDS, *gap_blocks("open_point", call.open_points, room)]
    if call.contradictions:
        listed = [contradiction_block(item) for item in call.contradictions]
        parts += [_CONTRADICTION_WORDS, *first_of(listed, room)]
    if call.problems:
        parts.append(repair("answer", call.problems))

    last_words = _LAST_WORDS[call.mode]
    if call.answer_schema_ref:
        last_words += _JSON_WORDS
    return "\n\n".join([*parts, last_words])


_DRAFT_WORDS = (
    "The draft already contains what earlier findings said. Keep its statements with "
    "their ids, unless a finding below corrects them. Only the findings that came later "
    "follow."
)
_DIGEST_WORDS = f"""\
A finding of the role {DIGEST} condenses several findings. Cite the ids in its square brackets."""
_OPEN_POINT_WORDS = """\
A review found these faults, which could not be fixed. Say so where it matters in the answer:"""
_CONTRADICTION_WORDS = """\
These findings disagree. Follow how it was settled, and say so in the answer:"""
_LAST_WORDS = {
    "final": "Write the answer.",
    "draft": (
        "Some subtasks are still running. Write a short draft of the answer from these findings. "
        "After each statement put the ids of the findings that support it in square brackets, such "
        "as [t3]: the findings will not be shown again."
    ),
    "digest": "Condense these findings.",
}
_JSON_WORDS = (
    "\n"
    "answer_json gives the facts of the answer in the form that was asked for. Take every value "
    "from the findings: a program compares each of them. Use null, where the form allows it, for "
    "a value that no finding has."
)


async def synthesize(desk: Desk, call: SynthesisInput) -> SynthesisReply:
    """Returns one text from the findings; citations that do not hold are dropped here, in code."""
    schema = None
    if call.answer_schema_ref:
        schema = json.loads(await read_text(desk.store, call.answer_schema_ref))
    plan = await read_plan(desk.store, call.plan_ref)
    answered = await _write_answer(desk, call, plan, schema)
    message = answered.message
    reply = SynthesisReply(
        head=answered.head,
        stop_reason=message.stop_reason,
        refusal=message.refusal,
        usage=answered.usage,
    )
    text = message.text().strip()
    if message.refusal is not None or not text:
        return reply

    citable = _citable(call, plan)
    cited = await _cited(desk, call)
    if call.mode != "digest":
        draft = await _read_answer(reply, text, schema, call)
        text = with_valid_marks(draft.answer, {subtask.id for subtask in plan.subtasks}, citable)
        reply.contradictions = list(_contradictions(draft, citable))[: limits.CONFLICTS]
    run_id = call.run.run_id
    goal = await read_text(desk.store, call.goal_ref)
    if text.strip():
        shown = without_links(text, addresses_in(*cited.texts, *goal_of_people(goal, run_id)))
        # Drafts and digests are read by reference only: history gets a preview of them.
        is_final = call.mode == "final"
        inline = limits.ANSWER_INLINE_BYTES if is_final else limits.REPLY_PREVIEW_BYTES
        reply.answer.text = cut(shown, inline)
        reply.bytes = size(shown)
        reply.answer.ref = await desk.store.put_output(run_id, shown)
    given = [goal, *(item.whole for item in plan.subtasks)]
    await asyncio.to_thread(_look_up, reply, text, call, citable, cited, given)
    return reply


def _contradictions(draft: AnswerDraft, citable: set[str]) -> Iterator[Contradiction]:
    """Yields the contradictions that an answer describes between findings that it may cite."""
    for item in draft.contradictions:
        ids = [each for each in dict.fromkeys(item.subtask_ids) if each in citable]
        if ids and item.description.strip():
            yield Contradiction(
                subtask_ids=ids,
                description=item.description,
                resolution=item.resolution,
            )


async def _write_answer(
    desk: Desk,
    call: SynthesisInput,
    plan: Plan,
    schema: JsonObject | None,
) -> Answered:
    """Returns the model's answer, in the form that fits the model, the mode and the schema."""

    async def write_prompt(tokens: int) -> str:
        goal = await read_text(desk.store, call.goal_ref)
        whole = await read_text(desk.store, call.draft_ref) if call.draft_ref else None
        draft = None if whole is None else cut(whole, int(tokens * limits.CHARS_PER_TOKEN / 2))
        write = partial(synthesis_request, call, goal, plan, draft, room=list_bytes(tokens))
        return await with_findings(desk.store, call.findings, write, tokens)

    window = await desk.calls.window(call.run, call.model)
    system = SHORT_SYNTHESIS_SYSTEM if window.is_small else SYNTHESIS_SYSTEM
    form: type[Model] | None = ShortAnswerDraft if window.is_small else AnswerDraft
    if call.mode == "digest":
        system = DIGEST_SYSTEM
        form = None
    if schema is not None:
        sent = await answer_schema.sendable(schema, call.run.run_id)
        value: Any = Annotated[JsonValue, WithJsonSchema(sent)]
        form = create_model("AnswerDraft", __base__=AnswerDraft, answer_json=(value, ...))
    return await send_to_model(desk, call, system, form, write_prompt)


async def _read_answer(
    reply: SynthesisReply,
    text: str,
    schema: JsonObject | None,
    call: SynthesisInput,
) -> AnswerDraft:
    """Returns the answer of the model; its confidence and JSON go into the reply."""
    try:
        draft = read_json(AnswerDraft, text)
    except ValueError as error:
        if reply.stop_reason in CUT:
            return AnswerDraft(answer="")
        if schema is not None or ALL_JSON.match(text):
            reply.problems = [cut(str(error), limits.SENTENCE_BYTES)]
        # A model that answers in prose has answered: the text stands, without a confidence.
        return AnswerDraft(answer=text)
    reply.answer.confidence = share_of(draft.confidence)
    if schema is None:
        return draft
    if "answer_json" not in draft.model_fields_set:
        reply.problems = ["answer_json is missing"]
        return draft
    run_id = call.run.run_id
    is_second = bool(call.problems)
    given = await answer_schema.value_of(schema, draft.answer_json, run_id, repeated=is_second)
    value = without_images(given)
    reply.problems = await answer_schema.problems(schema, value, run_id)
    reply.answer.as_json = None if reply.problems else value
    return draft


async def _cited(desk: Desk, call: SynthesisInput) -> CitedFindings:
    """Returns the findings that an answer may cite, with the draft and the digests behind it."""
    texts = await read_texts(desk.store, [finding.text_ref for finding in call.findings])
    found = list(zip(call.findings, texts, strict=True))
    others = [text for finding, text in found if finding.role == DIGEST]
    if call.draft_ref:
        others.append(await read_text(desk.store, call.draft_ref))
    own = {finding.subtask_id: text for finding, text in found if finding.role != DIGEST}
    return CitedFindings(own, others)


def _look_up(
    reply: SynthesisReply,
    text: str,
    call: SynthesisInput,
    citable: set[str],
    cited: CitedFindings,
    given: list[str],
) -> None:
    """Writes an answer's citations, unsupported claims and missing parts into the reply.

    A claim is supported if it is `given`, or in the finding that it cites. First of what is given
    is the goal.
    """
    if call.mode != "digest":
        reply.answer.citations = list(islice(cited.citations(text, citable), limits.CITATIONS))
    settled = [f"{item.description}\n{item.resolution}" for item in call.contradictions]
    sources = [Source(ground) for ground in (*given, *cited.texts, *settled)]
    miscited = cited.miscited(text, citable, given)
    fields = field_claims(reply.answer.as_json, [*cited.texts, *settled], given)
    checked = check(text, sources, citable)
    reply.supported = sum(bool(claim.source) for claim in checked)
    doubtful = [item for item in (*call.doubtful, *miscited) if item in text]
    nowhere = found_nowhere(checked, doubtful)
    unsupported = [Unsupported(text=item, where=ANSWER) for item in nowhere]
    missing = ((path, said) for path, said, is_found in fields if not is_found)
    for path, said in islice(missing, limits.UNSUPPORTED_SHOWN):
        unsupported.append(Unsupported(text=said, where=path))
    reply.answer.unsupported = unsupported
    # JSON may have what the text lacks.
    if call.mode == "final" and call.answer_schema_ref is None:
        reply.left_out = parts_left_out(given[0], text)


def _citable(call: SynthesisInput, plan: Plan) -> set[str]:
    """Returns the subtasks that may be cited.

    With a draft or digests these are all that are planned, as their findings are not in the prompt.
    """
    complete = {finding.subtask_id for finding in call.findings if finding.complete}
    planned = {subtask.id for subtask in plan.subtasks if subtask.for_each is None}
    if call.draft_ref is None and not any(finding.role == DIGEST for finding in call.findings):
        return complete & planned
    incomplete = {finding.subtask_id for finding in call.findings if not finding.complete}
    return planned - incomplete - {gap.subtask_id for gap in call.missing}


SYNTHESIS = Question("synthesize", SynthesisInput, SynthesisReply, synthesize)
