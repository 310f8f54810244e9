"""What reviewers, judges and planners say: looked up before anybody reads it, repaired anew, or left out."""

from pathlib import Path
from typing import Any

import pytest

from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import TraceEvent
from tests.scripted_model import Reply, as_json, script, text, tools
from tests.serving import own_server, settings_for
from tests.workflow.runs import Lab, found
from tests.workflow.scripts import IMPOSSIBLE, in_order, item, plans, reviewed, subtasks, verdicts
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "orchard", "max_reviews": 1}

ORCHARD = subtasks(item("t1", "clerk", description="Give the pears of 2009 in the harvest book, in kg"))
BOOK = tools(("harvest", {"year": 2009}))
PEARS = text("In 2009 the garden yielded 4,412 kg of pears.\n\nConfidence: 0.9\nLimitations: none")


async def run(lab: Lab, *reviews: Reply, turns: list[Reply] | None = None) -> tuple[RunResult, list[TraceEvent]]:
    """Runs a subtask that reads the harvest book, with these reviews. Returns the result and the trace."""
    worked = in_order(*(turns or [BOOK, PEARS]))
    lab.play(reviewed(ORCHARD, *reviews, turns={"t1": worked}))
    handle = await lab.start()
    result = await handle.result()
    return result, (await handle.query(SupervisorWorkflow.trace)).events


def of_type(events: list[TraceEvent], kind: str) -> list[dict[str, Any]]:
    """The data of the events of a type."""
    return [event.data for event in events if event.type == kind]


async def test_what_a_reviewer_made_up_is_neither_handed_on_nor_shown(lab: Lab) -> None:
    invented = "The apples, 1830.5 kg, are missing. The carrier is UPS and the date is 2008."
    result, _ = await run(lab, verdicts(t1=invented), verdicts(t1=invented))
    assert "<feedback>\nThe apples, 1830.5 kg, are missing.\n</feedback>" in lab.prompt("t1/2/turn.1")
    assert not any("UPS" in str(call.step.body) for call in lab.calls)
    assert "UPS" not in result.model_dump_json()
    assert [gap.reason for gap in result.gaps] == ["a review still finds: The apples, 1830.5 kg, are missing."]


async def test_a_refusal_of_a_finding_that_is_all_found_must_name_what_is_missing(lab: Lab) -> None:
    refusal = "The finding does not answer what its subtask asks. It should give the pears in kg."
    result, events = await run(lab, verdicts(t1=refusal))
    assert not any(step.startswith("t1/2") for step in lab.steps)
    assert (result.status, result.gaps) == ("completed", [])
    [told] = of_type(events, "reviewed")
    assert (told["flagged"], told["without_effect"]) == ([], ["t1"])


async def test_a_finding_gives_way_in_a_review_only_to_one_with_as_much_that_is_supported(lab: Lab) -> None:
    refusal = verdicts(t1="The apples, 1830.5 kg, are missing.")
    result, events = await run(
        lab, refusal, verdicts(), turns=[BOOK, PEARS, text("The harvest was good in that year.")]
    )
    assert "4,412 kg" in found(result).summary
    assert of_type(events, "review_brought") == [{"changed": [], "unchanged": ["t1"]}]
    assert [gap.reason.partition(":")[0] for gap in result.gaps] == ["what came back had less that is supported"]


async def test_a_review_that_cannot_be_read_is_asked_for_again_without_it(lab: Lab) -> None:
    await run(lab, text("All is well."), verdicts())
    assert [step for step in lab.steps if "review" in step] == ["review.1", "review.1.2"]
    again = lab.call("review.1.2").step
    assert len(again.body["messages"]) == 1
    assert "An earlier review could not be used" in again.prompt
    assert "All is well." not in str(again.body)


async def test_a_plan_that_cannot_run_is_asked_for_again_without_it(lab: Lab) -> None:
    bad = subtasks(item("t1", "clerk", depends_on=["t1"], description="Weigh the pears of the bad plan"))
    lab.play(plans(bad, ORCHARD, turns={"t1": in_order(BOOK, PEARS)}))
    await lab.run(max_reviews=0)
    again = lab.call("plan.1.2").step
    assert len(again.body["messages"]) == 1
    assert "An earlier plan could not be used" in again.prompt
    assert "t1 -> t1" in again.prompt
    assert "the bad plan" not in str(again.body)


async def test_of_two_answers_the_one_with_more_that_is_supported_counts(lab: Lab) -> None:
    written = in_order(
        as_json({"answer": "The garden yielded 4,412 kg of pears in 2009 [t1], a share of 8.5 %.", "confidence": 0.9}),
        as_json({"answer": "The garden yielded pears.", "confidence": 0.9}),
    )
    usual = script(ORCHARD, {"t1": in_order(BOOK, PEARS)})
    lab.play(lambda step: written(step) if step.kind == "synthesis" else usual(step))
    result = await lab.run(max_reviews=0)
    again = lab.call("synthesis.2").step
    assert len(again.body["messages"]) == 1
    assert "8.5 %" in again.prompt
    assert "4,412 kg" in result.answer
    assert [(item.text, item.where) for item in result.unsupported] == [("8.5 %", "answer")]


@pytest.mark.parametrize(
    ("second", "doubts"),
    [
        ("In 2009 the garden yielded 4,412 kg of pears [t1].", []),
        ("In 2009 the garden yielded pears [t1].", [("the answer has nothing for: how many kilograms", "answer")]),
    ],
)
async def test_an_answer_without_a_part_of_the_goal_goes_back_and_what_stays_away_is_a_doubt(
    lab: Lab, second: str, doubts: list[tuple[str, str]]
) -> None:
    goal = "What did the garden yield in 2009, and how many kilograms?"
    half = "In 2009 the garden yielded pears [t1]."
    written = in_order(*(as_json({"answer": said, "confidence": 0.9}) for said in (half, second)))
    usual = script(ORCHARD, {"t1": in_order(BOOK, PEARS)})
    lab.play(lambda step: written(step) if step.kind == "synthesis" else usual(step))

    result = await lab.run(goal=goal, max_reviews=0)

    assert "the answer has nothing for: how many kilograms" in lab.call("synthesis.2").step.prompt
    assert [(doubt.text, doubt.where) for doubt in result.doubts] == doubts
    assert result.confidence is not None
    assert (result.confidence < 0.5) == bool(doubts)


async def test_what_a_judge_made_up_is_not_shown(lab: Lab) -> None:
    conflict = {"subtask_ids": ["t1", "t2"], "description": "They differ. The carrier is UPS."}
    plan = subtasks(item("t1", "clerk"), item("t2", "clerk"))
    judge = as_json({"choice": 2, "reason": "It read the book. Amazon and UPS say 50000."})
    worked = {name: in_order(BOOK, PEARS) for name in ("t1", "t2")}
    lab.play(reviewed(plan, verdicts([conflict]), turns=worked, judge=judge))
    result = await lab.run()
    [shown] = result.contradictions
    assert (shown.description, shown.resolution) == ("They differ.", "t2 counts: It read the book.")


async def test_steps_that_are_off_for_a_model_are_left_out(lab: Lab, tmp_path: Path) -> None:
    shape = subtasks(item("t1", "clerk"), item("t2", "clerk"))
    turns = {"t1": in_order(IMPOSSIBLE), "t2": in_order(BOOK, PEARS)}
    lab.play(reviewed(shape, verdicts(t2="The apples, 1830.5 kg, are missing."), turns=turns))
    settings = settings_for(lab.model.url, tmp_path, model_off="mine*=review+refine+replan,other=judge")
    async with own_server() as client, serving(client, settings):
        handle = await lab.on(client).start(models={"supervisor": "mine-1"}, max_replans=1)
        result = await handle.result()
        events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [step for step in lab.steps if "/" not in step] == ["plan.1.1", "synthesis.1"]
    assert [report.state for report in result.subtasks] == ["failed", "completed"]
    assert {data["step"] for data in of_type(events, "step_left_out")} == {"review", "refine", "replan"}
