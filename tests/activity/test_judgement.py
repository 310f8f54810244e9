"""Refining, reviewing and judging: what counts of a reply is decided in code, and a bad reply ends nothing."""

from typing import Any, Literal

import pytest

from activities.contracts.packed import DependencyRef
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
from supervision.contract.finding import FindingRecord
from supervision.contract.plan import Subtask
from supervision.contract.result import Contradiction, Problem
from supervision.contract.team import Role, Team
from tests.activity.supervising import MODEL, ROLE, Desk
from tests.scripted_model import Reply, as_json, stop, text

T1 = Subtask(id="t1", description="Count the pears of 1990", role="reader")
T2 = Subtask(id="t2", description="Weigh the pears of 1990", role="counter")
ORCHARD = Team(name="orchard", generalist="reader", roles=[Role(name="reader", **ROLE)])


# --- refine ------------------------------------------------------------------------------------------


async def refine(desk: Desk, reply: Reply, team: str | Team = ORCHARD, **fields: Any) -> RefineReply:
    desk.say(reply)
    request = RefineInput(
        run=await desk.run_ref(),
        team_ref=await desk.team(team),
        goal_ref=await desk.put("goal", "How large is the crop?"),
        plan_ref=await desk.plan(T1, T2),
        subtask_id="t1",
        role="reader",
        model=MODEL,
        attempt=2,
        error=Problem(type="TurnLimit", message="no finding after ten turns"),
        **fields,
    )
    return await desk.ask(REFINE, request)


async def test_the_tools_and_the_data_of_the_role_are_shown_to_the_one_who_rewrites(desk: Desk) -> None:
    folder = desk.teams_folder / "yearbooks"
    folder.mkdir()
    (folder / "pears.csv").write_text("year,pears\n1990,44\n")
    (folder / "team.toml").write_text(
        'name = "yearbooks"\ngeneralist = "reader"\n[[roles]]\nname = "reader"\ndescription = "Counts pears."\n'
        'system_prompt = "You count."\ntools = ["look"]\n[[roles]]\nname = "other"\ndescription = "Writes."\n'
        'system_prompt = "You write."\ntools = ["sum"]\n[[tools]]\nname = "look"\nuses = "sql_tables"\n'
        'options = { tables = "*.csv" }\n[[tools]]\nname = "sum"\nuses = "calculator"\n'
    )
    await refine(desk, as_json({"description": "Count the pears"}), team="yearbooks")
    shown = desk.asked[-1].step.prompt
    assert "\n- look: " in shown
    assert "table pears (year 1990" in shown
    assert "- sum:" not in shown
    assert "narrow the subtask to what they can give and say so in it" in desk.prompt


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


async def test_a_conflict_needs_two_findings_that_exist(desk: Desk) -> None:
    def conflict(*ids: str, words: str = "44 against 45") -> dict[str, Any]:
        return {"subtask_ids": list(ids), "description": words}

    listed = [conflict("t1", "t2", "t9"), conflict("t1"), conflict("t1", "t1"), conflict("t1", "t2", words=" ")]
    reply = await review(desk, reviewed(conflicts=listed))
    assert reply.conflicts == [Contradiction(subtask_ids=["t1", "t2"], description="44 against 45")]


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (as_json({"verdicts": "none"}), "the reply is not the JSON asked for: verdicts"),
        (stop("max_tokens", '{"verdicts": ['), "the reply was cut off"),
    ],
)
async def test_a_review_nobody_can_read_judges_nothing(desk: Desk, reply: Reply, problem: str) -> None:
    got = await review(desk, reply)
    assert (got.verdicts, got.conflicts) == ([], [])
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


@pytest.mark.parametrize(("choice", "index"), [(1, 0), (0, None), (3, None)])
async def test_a_choice_counts_from_one_and_out_of_range_is_none(desk: Desk, choice: int, index: int | None) -> None:
    reply = await judge(desk, "select", as_json({"choice": choice, "reason": "It names its source."}))
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


@pytest.mark.parametrize(("prefer", "index"), [("t2", 1), ("t9", None)])
async def test_a_conflict_is_settled_for_one_side_or_none(desk: Desk, prefer: str | None, index: int | None) -> None:
    reply = await judge(desk, "conflict", as_json({"prefer": prefer, "resolution": "45 is newer."}))
    assert (reply.choice, reply.resolution) == (index, "45 is newer.")
    assert '<finding subtask_id="t2" role="reader">' in desk.prompt
