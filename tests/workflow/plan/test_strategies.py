"""How a run works: a plan up front, one step at a time, one role for the whole goal, or an answer at once."""

import functools

import pytest
from temporalio.client import Client

from supervision.contract.result import RunResult
from supervision.run.events import sentence
from tests.scripted_model import ScriptedModel, answer, as_json, status, stop, text, tools
from tests.workflow import runs
from tests.workflow.runs import GOAL, failure, prompt, started_children
from tests.workflow.scripts import in_order, item, plans, subtasks, with_replies
from workflows.supervisor import SupervisorWorkflow

start = functools.partial(runs.start, team="crew")

pytestmark = pytest.mark.usefixtures("worker")

FINISHED = as_json({"finished": True, "subtasks": [], "new_roles": []})


async def test_auto_answers_a_simple_goal_directly_with_no_worker_agent(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(subtasks(direct_answer="Three kilograms.", strategy="plan")))
    handle = await start(client, run_id)
    result = await handle.result()
    assert (result.status, result.answer, result.subtasks) == ("completed", "Three kilograms.", [])
    assert model.steps(run_id) == ["plan.1.1"]
    assert await started_children(client, run_id) == []
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.counts.total, shown.revision) == ("done", 0, 1)


async def test_auto_works_on_the_graph_that_the_planner_gave(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(subtasks(item("t1"), item("t2", depends_on=["t1"]), strategy="plan", direct_answer=None)))
    handle = await start(client, run_id)
    result = await handle.result()
    assert (result.status, result.plan_revisions) == ("completed", 1)
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1", "t2/1/turn.1", "synthesis.1"]
    assert await started_children(client, run_id) == [f"{run_id}/t1/1", f"{run_id}/t2/1"]


async def test_auto_goes_step_by_step_when_the_planner_says_so(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(
        run_id,
        plans(
            subtasks(item("t1", "reader"), strategy="step", direct_answer=None),
            subtasks(item("t2", "reckoner", depends_on=["t1"]), finished=False),
            FINISHED,
        ),
    )
    handle = await start(client, run_id)
    result = await handle.result()
    assert model.steps(run_id) == [
        "plan.1.1", "t1/1/turn.1", "plan.2.1", "t2/1/turn.1", "plan.3.1", "synthesis.1",
    ]  # fmt: skip
    assert (result.status, result.plan_revisions) == ("completed", 2)
    assert (await handle.query(SupervisorWorkflow.status)).revision == 2


async def test_plan_takes_no_direct_answer(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(subtasks(direct_answer="Three."), subtasks(item("t1"))))
    result = await (await start(client, run_id, strategy="plan")).result()
    assert [s.state for s in result.subtasks] == ["completed"]
    assert model.steps(run_id)[:2] == ["plan.1.1", "plan.1.2"]
    assert "a direct answer is not wanted here" in prompt(model, run_id, "plan.1.2")
    schema = model.of(run_id)[0].step.body["output_config"]["format"]["schema"]
    assert "direct_answer" not in schema["properties"]


async def test_plan_does_not_become_steps_whatever_the_planner_says(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(subtasks(item("t1"), strategy="step")))
    await (await start(client, run_id, strategy="plan")).result()
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1", "synthesis.1"]


async def test_route_gives_the_whole_goal_to_one_role(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(as_json({"role": "reckoner", "secondary_role": None, "description": "Weigh all pears."})))
    handle = await start(client, run_id, strategy="route")
    result = await handle.result()
    assert [(s.id, s.role, s.description) for s in result.subtasks] == [("t1", "reckoner", "Weigh all pears.")]
    assert [c.subtask_ids for c in result.citations] == [["t1"]]
    assert result.confidence == 0.8  # of the finding that it is, word for word
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1"]
    schema = model.of(run_id)[0].step.body["output_config"]["format"]["schema"]
    roles = ["hand", "reader", "librarian", "reckoner", "solo", "pupil", "far", "abroad"]
    assert schema["properties"]["role"]["enum"] == roles


async def test_a_secondary_role_works_beside_the_first_and_may_fail(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    reply = as_json({"role": "reader", "secondary_role": "reckoner", "description": "Weigh all pears."})
    endless = {"t2": lambda step: tools(("weigh", {"thing": f"pear {step.number}"}))}
    model.play(run_id, plans(reply, turns=endless, answer_reply=answer("read", ["t1"])))
    result = await (await start(client, run_id, strategy="route", max_turns=1, success="all")).result()
    assert [(s.role, s.depends_on, s.state) for s in result.subtasks] == [
        ("reader", [], "completed"),
        ("reckoner", [], "failed"),
    ]
    assert result.status == "partial"
    assert [gap.subtask_id for gap in result.gaps] == ["t2"]


async def test_a_role_that_the_team_does_not_have_gives_the_goal_to_the_generalist(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(as_json({"role": "wizard", "secondary_role": "witch", "description": "Weigh all pears."})))
    result = await (await start(client, run_id, strategy="route")).result()
    assert [(s.role, s.description) for s in result.subtasks] == [("hand", GOAL)]
    assert model.steps(run_id)[0:2] == ["plan.1.1", "t1/1/turn.1"]


async def test_a_role_that_a_planner_made_up_is_warned_of_and_done_by_the_generalist(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(subtasks(item("t1", "raeder"), item("t2", "reader"))))
    handle = await start(client, run_id)
    result = await handle.result()
    assert [s.role for s in result.subtasks] == ["hand", "reader"]
    assert result.warnings == ["the team has no role 'raeder': hand does t1"]
    events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [(e.subtask_id, e.data) for e in events if e.type == "role_unknown"] == [
        ("t1", {"role": "raeder", "by": "hand"})
    ]


async def test_a_judge_of_candidates_sees_the_role_of_each_and_reasons_before_it_chooses(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    shape = subtasks(item("t1", "reader", candidates=2, candidate_roles=["reckoner"]))
    chosen = as_json({"reason": "Its row is named.", "choice": 2})
    model.play(run_id, with_replies(plans(shape), judge=in_order(chosen)))
    result = await (await start(client, run_id)).result()
    shown = prompt(model, run_id, "judge.1")
    assert '<candidate number="1">\n<finding subtask_id="t1" role="reader" confidence="0.80">' in shown
    assert '<candidate number="2">\n<finding subtask_id="t1" role="reckoner" confidence="0.80">' in shown
    assert [s.role for s in result.subtasks] == ["reckoner"]


async def test_the_choice_of_an_answer_keeps_its_reason(client: Client, model: ScriptedModel, run_id: str) -> None:
    shape = subtasks(item("t1"), item("t2"), aggregation="select")
    chosen = as_json({"reason": "It names its source.", "choice": 2})
    model.play(run_id, with_replies(plans(shape), judge=in_order(chosen)))
    handle = await start(client, run_id)
    result = await handle.result()
    assert (result.answer, [c.subtask_ids for c in result.citations]) == ("finding of t2", [["t2"]])
    (event,) = [e for e in (await handle.query(SupervisorWorkflow.trace)).events if e.type == "answer_chosen"]
    assert (event.subtask_id, event.data["reason"]) == ("t2", "It names its source.")
    assert sentence(event)[0] == "its finding is the best of 2 answers"


async def test_a_route_that_stays_unreadable_goes_to_the_generalist(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(text("the reader, I think")))
    result = await (await start(client, run_id, strategy="route")).result()
    assert [s.role for s in result.subtasks] == ["hand"]
    assert model.steps(run_id)[:3] == ["plan.1.1", "plan.1.2", "plan.1.3"]


async def test_a_route_that_is_refused_fails_the_run(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(stop("refusal", details={"category": "cyber"})))
    error = await failure(await start(client, run_id, strategy="route"))
    assert (error.type, error.message) == ("InvalidPlan", "the planner refused the goal: cyber")
    assert model.steps(run_id) == ["plan.1.1"]


async def test_step_chooses_the_next_role_by_what_was_found(client: Client, model: ScriptedModel, run_id: str) -> None:
    turns = {"t1": lambda step: text("the pears lie in the barn\n\nConfidence: 0.8")}
    model.play(
        run_id,
        plans(
            subtasks(item("t1", "reader")), subtasks(item("t2", "reckoner", depends_on=["t1"])), FINISHED, turns=turns
        ),
    )
    handle = await start(client, run_id, strategy="step")
    result = await handle.result()
    assert [(s.id, s.role, s.state) for s in result.subtasks] == [
        ("t1", "reader", "completed"),
        ("t2", "reckoner", "completed"),
    ]
    second = prompt(model, run_id, "plan.2.1")
    assert '<planned id="t1" role="reader" state="completed">' in second
    assert "the pears lie in the barn" in second
    assert "the pears lie in the barn" in prompt(model, run_id, "t2/1/turn.1")
    assert [s.id for s in (await handle.query(SupervisorWorkflow.plan)).subtasks] == ["t1", "t2"]
    events = [e.type for e in (await handle.query(SupervisorWorkflow.trace)).events]
    assert events.count("plan_accepted") == 2


async def test_steps_end_at_the_cap(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(subtasks(item("t1")), subtasks(item("t2")), subtasks(item("t3"))))
    result = await (await start(client, run_id, strategy="step", max_subtasks=2)).result()
    assert [s.id for s in result.subtasks] == ["t1", "t2"]
    assert result.status == "completed"
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1", "plan.2.1", "t2/1/turn.1", "synthesis.1"]


async def test_a_step_is_one_subtask(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(subtasks(item("t1"), item("t2")), subtasks(item("t1")), FINISHED))
    result = await (await start(client, run_id, strategy="step")).result()
    assert [s.id for s in result.subtasks] == ["t1"]
    assert "exactly one subtask" in prompt(model, run_id, "plan.1.2")


async def test_a_step_after_a_failed_one_is_told_why(client: Client, model: ScriptedModel, run_id: str) -> None:
    endless = {"t1": lambda step: tools(("weigh", {"thing": "pear"}))}
    model.play(run_id, plans(subtasks(item("t1", "reckoner")), subtasks(item("t2")), FINISHED, turns=endless))
    result = await (await start(client, run_id, strategy="step", max_turns=1)).result()
    assert [s.state for s in result.subtasks] == ["failed", "completed"]
    assert "TurnLimit: no finding after 1 turns" in prompt(model, run_id, "plan.2.1")


async def test_steps_that_can_not_be_planned_leave_the_answer_to_what_was_found(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(subtasks(item("t1")), text("I am lost"), answer_reply=answer("one thing [t1]")))
    result = await (await start(client, run_id, strategy="step")).result()
    assert (result.answer, result.plan_revisions) == ("one thing [t1]", 1)
    assert model.steps(run_id)[2:5] == ["plan.2.1", "plan.2.2", "plan.2.3"]
    assert any("no next step" in warning and "no plan that can run" in warning for warning in result.warnings)


async def test_a_first_step_that_says_finished_is_sent_back(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, plans(FINISHED, subtasks(item("t1")), FINISHED))
    result = await (await start(client, run_id, strategy="step")).result()
    assert [s.id for s in result.subtasks] == ["t1"]
    assert "nothing has been done yet" in prompt(model, run_id, "plan.1.2")


async def test_steps_of_which_none_succeeds_fail_the_run(client: Client, model: ScriptedModel, run_id: str) -> None:
    refused = {"t1": lambda step: stop("refusal", details={"category": "cyber"})}
    model.play(run_id, plans(subtasks(item("t1")), FINISHED, turns=refused))
    error = await failure(await start(client, run_id, strategy="step"))
    assert error.type == "AllSubtasksFailed"
    assert RunResult.model_validate(error.details[0]).subtasks[0].state == "failed"


async def test_a_model_that_is_not_there_fails_the_run_at_its_first_call(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, lambda step: status(404, "not_found_error", "model: nobody"))
    error = await failure(await start(client, run_id, models={"supervisor": "nobody"}, budget={"tokens": 100_000}))
    assert error.type == "ProviderRejected"
    assert "nobody" in error.message
    assert model.steps(run_id) == ["plan.1.1"]
