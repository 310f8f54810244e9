"""The supervisor's own activities with the stand-in behind them: every call gets a sensible answer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from activities.contracts.run_contracts import DependencyRef, PlanInput, PlanReply, WorkNote
from activities.questions.planning import PLAN
from activities.questions.synthesis import SYNTHESIS, SynthesisInput, SynthesisReply
from temporal_supervisor.standin.extract.answers import FOOTER
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.team import Role, Team
from tests.activity.supervising import MODEL, Desk
from tests.scripted_model import ScriptedModel
from tests.standin.conftest import Served

GOAL = "How many pears did the orchards of the valley harvest from 1980 to 2020?"
ORCHARD = Team(
    name="orchard",
    generalist="reader",
    roles=[
        Role(name="reader", description="Reads the almanac for causes.", system_prompt="Read."),
        Role(name="counter", description="Queries tables: pears harvested by orchards.", system_prompt="Count."),
        Role(name="scribe", description="Writes a document from findings.", system_prompt="Write."),
    ],
)
T1 = Subtask(id="t1", description="Queries tables. Question: How many pears?", role="counter")
T2 = Subtask(id="t2", description="Reads. Question: Why so many pears?", role="reader")


@pytest.fixture
async def desk(served: Served, run_id: str, tmp_path: Path) -> AsyncIterator[Desk]:
    model = ScriptedModel()
    model.url = served.url
    made = Desk(model, run_id, tmp_path / "artifacts", tmp_path)
    yield made
    await made.close()


async def plan(desk: Desk, goal: str = GOAL, **fields: Any) -> PlanReply:
    request = PlanInput(
        run=await desk.run_ref(),
        goal_ref=await desk.put("goal", goal),
        team_ref=await desk.team(ORCHARD),
        model=MODEL,
        max_subtasks=12,
        **fields,
    )
    return await desk.ask(PLAN, request)


def shape(reply: PlanReply) -> list[tuple[str, str, list[str]]]:
    assert reply.problems == []
    assert reply.plan is not None
    return [(s.id, s.role, s.depends_on) for s in reply.plan.subtasks]


async def test_a_goal_is_routed_to_the_role_whose_description_fits_best(desk: Desk) -> None:
    reply = await plan(desk, strategy="route")
    assert shape(reply) == [("t1", "counter", [])]
    assert reply.plan is not None
    assert GOAL.rstrip("?") in reply.plan.subtasks[0].description


async def test_step_by_step_each_fitting_role_works_once_and_then_it_ends(desk: Desk) -> None:
    reply = await plan(desk, strategy="step")
    notes: list[WorkNote] = []
    for revision in range(2, 5):
        assert reply.plan is not None
        last = reply.plan.subtasks[-1]
        notes.append(WorkNote(subtask_id=last.id, role=last.role, state="completed", note="44 pears"))
        previous: dict[str, Any] = {"plan_ref": reply.plan_ref, "done": notes, "revision": revision}
        before, reply = reply, await plan(desk, strategy="step", **previous)
    assert shape(before) == [("t1", "reader", []), ("t2", "counter", []), ("t3", "scribe", ["t1", "t2"])]
    assert (reply.finished, reply.plan) == (True, None)


async def synthesized(desk: Desk, findings: list[DependencyRef], number: int = 1, **fields: Any) -> SynthesisReply:
    request = SynthesisInput(
        run=await desk.run_ref(),
        goal_ref=await desk.put("goal", GOAL),
        plan_ref=await desk.plan(T1, T2),
        model=MODEL,
        findings=findings,
        number=number,
        max_tokens=9000,
        **fields,
    )
    return await desk.ask(SYNTHESIS, request)


CROP = "- Hill: pears went from 20 (1980) to 44 (2020).\n\n| farm | pears |\n| --- | --- |\n| Hill | 44 |"


@pytest.mark.parametrize("mode", ["digest", "draft"])
async def test_what_is_folded_in_before_keeps_its_figures_and_citations_in_the_answer(desk: Desk, mode: Any) -> None:
    rain = await desk.findings(t2="It rained in the valley.")
    early = await desk.findings(t1=CROP) + (rain if mode == "digest" else [])
    folded = (await synthesized(desk, early, mode=mode)).answer
    text = await desk.read(folded.ref)
    assert "- Hill: pears went from 20 (1980) to 44 (2020). [t1]" in text
    assert "| Hill | 44 |" in text
    digest = DependencyRef(subtask_id="digest-1", role="digest", text_ref=folded.ref or "")
    rest: dict[str, Any] = {"findings": [digest]} if mode == "digest" else {"findings": rain, "draft_ref": folded.ref}
    answer = (await synthesized(desk, number=2, **rest)).answer
    assert "20 (1980) to 44 (2020)" in answer.text
    assert "It rained in the valley." in answer.text
    assert {subtask_id for citation in answer.citations for subtask_id in citation.subtask_ids} == {"t1", "t2"}
    assert answer.text.count(FOOTER) == 1
