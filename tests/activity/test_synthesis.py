"""Writing from findings, refining, reviewing, judging: code decides what counts of a reply; a bad one ends nothing."""

import json
from typing import Any, Literal

import pytest

from activities.contracts.run_contracts import DependencyRef
from activities.prompts.prompt_blocks import described
from activities.questions.judgement import (
    JUDGE,
    REFINE,
    REVIEW,
    JudgeInput,
    JudgeReply,
    RefineInput,
    RefineReply,
    ReviewInput,
    ReviewReply,
)
from activities.questions.synthesis import SYNTHESIS, SynthesisInput, SynthesisReply
from temporal_supervisor.supervision.agent.turn_rules import WINDOW_FULL
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import CheckedClaim, Evidence, FindingRecord
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.result import Contradiction, Problem
from temporal_supervisor.supervision.contract.team import Role, Team
from tests.activity.supervising import MODEL, ROLE, Desk
from tests.scripted_model import Reply, answer, as_json, stop, text

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
    assert [(c.claim, c.subtask_ids) for c in reply.answer.citations] == [("About t1", ["t1"]), ("About t2", ["t2"])]
    assert (
        await desk.read(reply.answer.ref) == reply.answer.text == "It is 45 t. About t1 [t1]. About t2 [t2]. About t3."
    )
    assert "citations" not in desk.schema["properties"]
    assert (reply.answer.confidence, reply.problems) == (0.9, [])
    assert "Name the unit." in desk.prompt


async def test_a_contradiction_names_findings_that_exist(desk: Desk) -> None:
    def contradiction(*ids: str, words: str = "44 against 45") -> dict[str, Any]:
        return {"subtask_ids": list(ids), "description": words, "resolution": "45 is newer."}

    listed = [contradiction("t1", "t9", "t1"), contradiction("t9"), contradiction("t1", "t2", words=" ")]
    reply = await synthesize(desk, answer("It is 45 t.", contradictions=listed))
    assert reply.contradictions == [
        Contradiction(subtask_ids=["t1"], description="44 against 45", resolution="45 is newer.")
    ]


async def test_a_digest_is_plain_text_known_by_reference(desk: Desk) -> None:
    words = "In 1991 it was 44 t [t1]. " * 400
    reply = await synthesize(desk, text(words), mode="digest")
    assert "output_config" not in desk.asked[-1].step.body
    assert (await desk.read(reply.answer.ref)).strip() == words.strip()
    assert len(reply.answer.text.encode()) <= limits.REPLY_PREVIEW_BYTES
    assert "Keep every figure" in desk.prompt


@pytest.mark.parametrize(
    "fields", [{"confidence": "high", "contradictions": ""}, {"contradictions": ["none"]}, {}], ids=str
)
async def test_an_answer_beside_fields_that_cannot_be_read_is_the_answer(desk: Desk, fields: dict[str, Any]) -> None:
    written = f"Here it is:\n```json\n{json.dumps({'answer': 'It is 45 t [t2].', **fields})}\n```"
    reply = await synthesize(desk, text(written))
    assert (reply.answer.text, reply.answer.confidence, reply.problems) == ("It is 45 t [t2].", None, [])


@pytest.mark.parametrize("reason", ["max_tokens", WINDOW_FULL])
async def test_half_an_answer_is_none(desk: Desk, reason: str) -> None:
    reply = await synthesize(desk, stop(reason, '{"answer": "The crop is 4'))
    assert (reply.answer.text, reply.answer.ref, reply.problems) == ("", None, [])


async def test_json_that_is_no_answer_is_not_shown_without_a_word_to_its_author(desk: Desk) -> None:
    reply = await synthesize(desk, text('{"answer": "The "crop" is 45 t."}'))
    assert reply.problems[0].startswith("the reply is not the JSON asked for")


# --- structured answers ----------------------------------------------------------------------------------


async def test_a_structured_answer_that_does_not_fit_says_where(desk: Desk) -> None:
    first = await synthesize(desk, answer("Nine.", answer_json={"crop": 9, "unit": "lb"}), schema=SCHEMA)
    assert (first.answer.text, first.answer.as_json) == ("Nine.", None)
    assert first.problems == [
        "answer_json.crop: 9 is less than the minimum of 10",
        "answer_json.unit: 'lb' is not one of ['t', 'kg']",
    ]


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
    assert got.answer.text
    assert got.answer.as_json is None


async def test_a_schema_beyond_the_provider_is_asked_for_as_text_and_enforced_here(desk: Desk) -> None:
    free = '{"type": "object", "additionalProperties": {"type": "integer"}}'
    reply = await synthesize(desk, answer(answer_json='{"pears": 45}'), schema=free)
    assert (reply.answer.as_json, reply.problems) == ({"pears": 45}, [])
    assert desk.schema["properties"]["answer_json"]["type"] == "string"
    wrong = await synthesize(desk, answer(answer_json='{"pears": "many"}'), schema=free)
    assert wrong.problems == ["answer_json.pears: 'many' is not of type 'integer'"]


# --- judgements --------------------------------------------------------------------------------------


T1 = Subtask(id="t1", description="Count the pears of 1990", role="reader")
T2 = Subtask(id="t2", description="Weigh the pears of 1990", role="counter")
READERS = Team(name="orchard", generalist="reader", roles=[Role(name="reader", **ROLE)])


# --- refine ------------------------------------------------------------------------------------------


async def refine(desk: Desk, reply: Reply, team: str | Team = READERS, **fields: Any) -> RefineReply:
    desk.say(reply)
    request = RefineInput(
        run=await desk.run_ref(),
        team_ref=await desk.team(team),
        goal_ref=await desk.put("goal", "How large is the crop?"),
        plan_ref=await desk.plan(T1, T2),
        subtask_id="t1",
        role=fields.pop("role", "reader"),
        model=MODEL,
        attempt=2,
        error=Problem(type="TurnLimit", message="no finding after ten turns"),
        **fields,
    )
    return await desk.ask(REFINE, request)


async def test_the_tools_and_the_data_of_the_role_are_shown_to_the_one_who_rewrites(desk: Desk) -> None:
    await refine(desk, as_json({"description": "Count the pears"}), team=desk.write_orchard(), role="counter")
    shown = desk.asked[-1].step.prompt
    assert "\n- query_data: " in shown
    assert "table harvest (year: 1990" in shown
    assert "- read_document:" not in shown
    assert "narrow the subtask to what they can give and say so in it" in desk.prompt
    assert "its outcome is partial" in desk.prompt


@pytest.mark.parametrize(
    "reply",
    [text("sorry"), as_json({"description": "Analyze the data thoroughly and provide insights"}), stop("refusal")],
    ids=["prose", "vague", "refusal"],
)
async def test_without_a_usable_description_there_is_none(desk: Desk, reply: Reply) -> None:
    got = await refine(desk, reply)
    assert (got.description_ref, got.usage.model_calls) == (None, 1)


# --- review --------------------------------------------------------------------------------------------


async def review(desk: Desk, reply: Reply) -> ReviewReply:
    desk.say(reply)
    request = ReviewInput(
        run=await desk.run_ref(),
        goal_ref=await desk.put("goal", "How large is the crop?"),
        plan_ref=await desk.plan(T1, T2, Subtask(id="t3", description="Not yet begun at all")),
        model=MODEL,
        round=1,
        findings=await desk.findings(t1="44 pears", t2="9 kg"),
    )
    return await desk.ask(REVIEW, request)


def reviewed(*verdicts: dict[str, Any], conflicts: list[Any] | None = None) -> Reply:
    return as_json({"verdicts": list(verdicts), "conflicts": conflicts or []})


async def test_a_conflict_needs_two_findings_and_those_between_the_same_are_one(desk: Desk) -> None:
    between = {"t1 t2 t9": "44", "t1": "44", "t1 t1": "44", "t1 t2": " ", "t2 t1": "9"}
    listed = [{"subtask_ids": ids.split(), "description": words} for ids, words in between.items()]
    reply = await review(desk, reviewed(conflicts=listed))
    assert reply.conflicts == [Contradiction(subtask_ids=["t1", "t2"], description="44\n9")]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (as_json({"verdicts": 7}), "the reply is not the JSON asked for: verdicts"),
        (stop("max_tokens", '{"verdicts": ['), "the reply was cut off"),
        (stop(WINDOW_FULL, '{"verdicts": ['), "the reply was cut off"),
    ],
)
async def test_a_review_nobody_can_read_judges_nothing(desk: Desk, reply: Reply, problem: str) -> None:
    got = await review(desk, reply)
    assert (got.feedback, got.conflicts) == ({}, [])
    assert got.problem.startswith(problem)


# --- judge ---------------------------------------------------------------------------------------------


async def judge(
    desk: Desk, question: Literal["select", "conflict"], reply: Reply, findings: list[DependencyRef] | None = None
) -> JudgeReply:
    desk.say(reply)
    request = JudgeInput(
        run=await desk.run_ref(),
        goal_ref=await desk.put("goal", "How large is the crop?"),
        plan_ref=await desk.plan(T1, T2),
        model=MODEL,
        number=3,
        question=question,
        description="Count the pears of 1990",
        findings=findings or await desk.findings(t1="44 pears", t2="45 pears"),
    )
    return await desk.ask(JUDGE, request)


@pytest.mark.parametrize("question", ["select", "conflict"])
@pytest.mark.parametrize(("choice", "index"), [(1, 0), (0, None), (3, None), (None, None)])
async def test_a_choice_counts_from_one_and_out_of_range_is_none(
    desk: Desk, question: Literal["select", "conflict"], choice: int | None, index: int | None
) -> None:
    reply = await judge(desk, question, as_json({"choice": choice, "reason": "It names its source."}))
    assert (reply.choice, reply.resolution) == (index, "It names its source.")
    assert '<candidate number="2">\n<finding subtask_id="t2" role="reader">\n45 pears' in desk.prompt
    assert desk.steps == ["judge.3"]
    assert list(desk.schema["properties"]) == ["reason", "choice"]


async def test_a_judge_of_candidates_sees_what_speaks_against_each(desk: Desk) -> None:
    record = FindingRecord(confidence=0.95, limitations=["one orchard only"], unsupported=["46 pears"])
    (made_up,) = await desk.findings(t1="46 pears")
    made_up.record_ref = await desk.put("record", record.model_dump_json())
    (other,) = await desk.findings(t1="44 pears, one tree left out")
    other.partial = True
    await judge(desk, "select", as_json({"reason": "It is supported.", "choice": 2}), [made_up, other])
    first, second = desk.asked[-1].step.prompt.split('<candidate number="2">')
    assert all(shown in first for shown in ('role="reader"', 'confidence="0.95"', "one orchard only"))
    assert 'partial="true"' in second
    assert "First put aside candidates with important figures" in desk.prompt


async def test_a_judge_sees_the_whole_of_a_query_that_is_shortened_beside_its_line(desk: Desk) -> None:
    calls = [Evidence(tool="query", arguments=f"SELECT {'x' * 200} < 1990"), Evidence(tool="look", arguments="pears")]
    claims = [
        CheckedClaim(text="44", source="query SELECT xx…", line="44"),
        CheckedClaim(text="9", source="look pears"),
    ]
    first, second = await desk.findings(t1="44 pears", t2="9 kg")
    first.record_ref = await desk.put("record", FindingRecord(checked=claims, evidence=calls).model_dump_json())
    await judge(desk, "select", as_json({"reason": "It is newer.", "choice": 2}), [first, second])
    assert f"Calls: query, look\n- query {calls[0].arguments}\n</finding>" in desk.prompt


def test_items_are_listed_without_the_words_of_their_template() -> None:
    template = Subtask(id="t1", description="Read the lease", role="reader", for_each="files:*")
    items = [Subtask(id=f"t1.{n}", description="Read the lease", role="reader", item=f"{n}.pdf") for n in (1, 2)]
    assert described([template, *items], 1000).splitlines()[1:] == ["- t1.1 (reader): 1.pdf", "- t1.2 (reader): 2.pdf"]
    assert described(items, 1000).splitlines()[0] == "- t1.1 (reader): 1.pdf: Read the lease"
