"""Writing from findings: answers, drafts, digests, and structured answers that fit or go back."""

import json
from typing import Any

import pytest

from activities.questions.synthesis import SYNTHESIS, SynthesisInput, SynthesisReply
from supervision.base import limits
from supervision.contract.plan import Subtask
from supervision.contract.result import Gap
from tests.activity.supervising import MODEL, Desk
from tests.scripted_model import Reply, answer, stop, text

SUBTASKS = [Subtask(id=f"t{n}", description=f"Count the pears of 199{n}") for n in range(1, 5)]
SCHEMA = (
    '{"type": "object", "properties": {"crop": {"type": "integer", "minimum": 10}, "unit": {"enum": ["t", "kg"]}},'
    ' "required": ["crop", "unit"]}'
)


async def synthesize(desk: Desk, *replies: Reply, schema: str | None = None, **fields: Any) -> SynthesisReply:
    desk.say(*replies)
    draft = fields.pop("draft", None)
    request = SynthesisInput(
        run=await desk.run_ref(),
        goal_ref=await desk.put("goal", "How large is the crop?"),
        plan_ref=await desk.plan(*SUBTASKS, final_instruction="Name the unit."),
        model=MODEL,
        answer_schema_ref=await desk.put("answer-schema", schema) if schema else None,
        draft_ref=await desk.put("draft", draft) if draft else None,
        max_tokens=9000,
        findings=fields.pop("findings", None) or await desk.findings(t1="44 t in 1991", t2="45 t in 1992"),
        **fields,
    )
    return await desk.ask(SYNTHESIS, request)


async def test_an_answer_is_stored_and_cites_what_it_may(desk: Desk) -> None:
    reply = await synthesize(desk, answer("It is 45 t.", cites=["t1", "t2", "t3"]))
    assert [(c.claim, c.subtask_ids) for c in reply.citations] == [("About t1", ["t1"]), ("About t2", ["t2"])]
    assert await desk.read(reply.answer_ref) == reply.answer == "It is 45 t. About t1 [t1]. About t2 [t2]. About t3."
    assert "citations" not in desk.schema["properties"]
    assert (reply.confidence, reply.problems) == (0.9, [])
    assert "Name the unit." in desk.prompt


async def test_a_citation_that_its_finding_does_not_say_is_dropped_and_a_figure_beside_its_mark_doubted(
    desk: Desk,
) -> None:
    reply = await synthesize(desk, answer("The crop was 44 t [t2]. Then it was 45 t [t2]."))
    assert [(item.claim, item.subtask_ids) for item in reply.citations] == [("Then it was 45 t", ["t2"])]
    assert reply.unsupported == ["44"]


async def test_a_digest_is_plain_text_known_by_reference(desk: Desk) -> None:
    words = "In 1991 it was 44 t [t1]. " * 400
    reply = await synthesize(desk, text(words), mode="digest", missing=[Gap(subtask_id="t3", reason="failed")])
    assert "output_config" not in desk.asked[-1].step.body
    assert (await desk.read(reply.answer_ref)).strip() == words.strip()
    assert reply.answer is not None
    assert len(reply.answer.encode()) <= limits.REPLY_PREVIEW_BYTES
    assert "Keep every figure" in desk.prompt
    assert "t3" not in desk.asked[-1].step.prompt


async def test_an_answer_from_digests_may_cite_the_findings_in_them(desk: Desk) -> None:
    (digest,) = await desk.findings(t1="44 t [t1], 45 t [t2]")
    reply = await synthesize(
        desk,
        answer(cites=["t1", "t2", "t3", "t9"]),
        findings=[digest.model_copy(update={"role": "digest"})],
        missing=[Gap(subtask_id="t3", reason="failed")],
    )
    assert [c.subtask_ids for c in reply.citations] == [["t1"], ["t2"]]
    assert "Cite the ids in its square brackets" in desk.prompt


@pytest.mark.parametrize("reply", [stop("refusal"), stop("max_tokens", '{"answer": "It')])
async def test_without_a_whole_reply_there_is_no_answer(desk: Desk, reply: Reply) -> None:
    got = await synthesize(desk, reply)
    assert (got.answer, got.answer_ref) == (None, None)


# --- structured answers ----------------------------------------------------------------------------------


async def test_a_structured_answer_that_does_not_fit_goes_back_once_and_fits_then(desk: Desk) -> None:
    first = await synthesize(desk, answer("Nine.", answer_json={"crop": 9, "unit": "lb"}), schema=SCHEMA)
    assert (first.answer, first.answer_json) == ("Nine.", None)
    assert first.problems == [
        "answer_json.crop: 9 is less than the minimum of 10",
        "answer_json.unit: 'lb' is not one of ['t', 'kg']",
    ]
    again = await synthesize(
        desk,
        answer(answer_json={"crop": 45, "unit": "t"}),
        schema=SCHEMA,
        head=first.head,
        problems=first.problems,
        number=2,
    )
    assert (again.answer_json, again.problems) == ({"crop": 45, "unit": "t"}, [])
    assert desk.steps == ["synthesis.1", "synthesis.2"]
    assert "answer_json.crop: 9 is less than the minimum of 10" in desk.asked[-1].step.prompt
    assert len(desk.asked[-1].step.body["messages"]) == 3


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (text("It is 45 t."), "the reply is not the JSON asked for"),
        (answer(), "answer_json is missing"),
        (answer(answer_json={"crop": float("nan"), "unit": "t"}), "answer_json holds what JSON can't say"),
    ],
)
async def test_what_is_no_structured_answer_says_so_and_keeps_the_text(desk: Desk, reply: Reply, problem: str) -> None:
    got = await synthesize(desk, reply, schema=SCHEMA)
    assert got.problems[0].startswith(problem)
    assert got.answer is not None
    assert got.answer_json is None


async def test_a_field_is_looked_up_beside_its_unit_and_the_name_of_its_row(desk: Desk) -> None:
    wind = {"site": "Esbjerg: 7.9 m/s mean wind, a permit takes 90 days", "mean_wind_ms": 180, "permit_days": 180}
    properties = {"site": {"type": "string"}, "mean_wind_ms": {"type": "number"}, "permit_days": {"type": "integer"}}
    schema = json.dumps({"type": "object", "properties": properties})
    findings = await desk.findings(
        t1="- Esbjerg: mean wind 7.9 m/s\n- Hirtshals: mean wind 8.4 m/s",
        t2="- Esbjerg: 90 days\n- Hirtshals: 180 days",
    )
    reply = await synthesize(desk, answer("-", answer_json=wind), schema=schema, findings=findings)
    assert reply.claims_to_fix == ["180 (answer_json.mean_wind_ms)", "180 (answer_json.permit_days)"]
    true = answer("-", answer_json={**wind, "mean_wind_ms": 7.9, "permit_days": 90})
    assert (await synthesize(desk, true, schema=schema, findings=findings)).claims_to_fix == []


async def test_a_schema_beyond_the_provider_is_asked_for_as_text_and_enforced_here(desk: Desk) -> None:
    free = '{"type": "object", "additionalProperties": {"type": "integer"}}'
    reply = await synthesize(desk, answer(answer_json='{"pears": 45}'), schema=free)
    assert (reply.answer_json, reply.problems) == ({"pears": 45}, [])
    assert desk.schema["properties"]["answer_json"]["type"] == "string"
    wrong = await synthesize(desk, answer(answer_json='{"pears": "many"}'), schema=free)
    assert wrong.problems == ["answer_json.pears: 'many' is not of type 'integer'"]
