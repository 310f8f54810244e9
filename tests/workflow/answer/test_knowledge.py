"""Answers from a model's own knowledge: the mark goes up out of nested teams, and nothing recalled has a tick."""

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.commands.evidence_commands import chain_report
from tests.scripted_model import answer, plan, script, text
from tests.workflow.runs import Lab, found
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import tree

USUAL = {"team": "house", "max_depth": 3}

RECALLED = "The tower of Pisa has 294 steps.\n\nConfidence: 0.9\nLimitations: none"
PLANS = {
    "": subtasks(item("t1", "storey")),
    "t1/1": subtasks(item("f1", "bench")),
    "t1/1/f1/1": subtasks(item("l1", "finder")),
}


async def test_the_mark_goes_up_out_of_nested_teams(lab: Lab, store: ArtifactStore) -> None:
    told = text(RECALLED)
    said = answer("The tower of Pisa has 294 steps [t1].")
    calls = {
        "l1/1/turn.1": told,
        "l1/1/turn.2": told,
        "f1/1/synthesis.1": answer("It has 294 steps.", ["l1"]),
        "t1/1/synthesis.1": answer("It has 294 steps.", ["f1"]),
    }
    usual = tree(PLANS, **calls)
    lab.play(lambda step: said if step.call == f"{step.run_id}/synthesis.1" else usual(step))
    result = await lab.run()
    assert (found(result).grounding, result.grounding) == ("knowledge", "knowledge")
    assert result.confidence is not None
    assert result.confidence <= 0.7
    report = await chain_report(lab.run_id, store)
    rows = [str(row) for row in report.rows]
    assert not any(row.startswith("✔ figure") for row in rows)
    assert any(row.startswith("○ figure: 294") for row in rows)


async def test_a_direct_answer_to_a_question_of_fact_is_from_knowledge(lab: Lab) -> None:
    lab.play(script(plan(answer="Mont Blanc is 4,806 m high.")))
    result = await lab.run(goal="How high is Mont Blanc?")
    assert (result.grounding, result.subtasks) == ("knowledge", [])
    assert result.confidence is not None
    assert result.confidence <= 0.7


async def test_a_greeting_is_not(lab: Lab) -> None:
    lab.play(script(plan(answer="Hello! What would you like to know?")))
    result = await lab.run(goal="Hello")
    assert (result.grounding, result.confidence) == ("tools", 1.0)
