"""How a run works: a plan up front, one step at a time, one role for the whole goal, or an answer at once."""

from tests.scripted_model import as_json, text
from tests.workflow.runs import Lab, events
from tests.workflow.scripts import item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew"}


FINISHED = as_json({"finished": True, "subtasks": [], "new_roles": []})


async def test_auto_answers_a_simple_goal_directly_with_no_worker_agent(lab: Lab) -> None:
    lab.play(plans(subtasks(direct_answer="Three kilograms.", strategy="plan")))
    handle = await lab.start()
    result = await handle.result()
    assert (result.status, result.answer, result.subtasks) == ("completed", "Three kilograms.", [])
    assert lab.steps == ["plan.1.1"]
    assert await lab.started_children() == []
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.counts.total, shown.revision) == ("done", 0, 1)


async def test_route_gives_the_whole_goal_to_one_role(lab: Lab) -> None:
    """Its finding is the answer, word for word."""
    route = as_json({"role": "reckoner", "secondary_role": None, "description": "Weigh all pears."})
    code = "def weigh(pears):\n    return sum(pears)\n" + "# and so on\n" * 400
    lab.play(plans(route, turns={"t1": lambda step: text(f"{code}\nConfidence: 0.5\nLimitations: none")}))
    handle = await lab.start(strategy="route", max_reviews=3)
    result = await handle.result()
    assert [(s.id, s.role, s.description) for s in result.subtasks] == [("t1", "reckoner", "Weigh all pears.")]
    assert [c.subtask_ids for c in result.citations] == [["t1"]]
    assert (result.status, result.answer.strip(), result.confidence) == ("completed", code.strip(), 0.5)
    assert "finding_adopted" in await events(handle)
    assert lab.steps == ["plan.1.1", "t1/1/turn.1"]
    schema = lab.calls[0].step.body["output_config"]["format"]["schema"]
    roles = ["hand", "reader", "librarian", "reckoner", "solo", "pupil", "far", "abroad"]
    assert schema["properties"]["role"]["enum"] == roles


async def test_a_role_that_a_planner_made_up_is_warned_of_and_done_by_the_generalist(lab: Lab) -> None:
    lab.play(plans(subtasks(item("t1", "raeder"), item("t2", "reader"))))
    handle = await lab.start()
    result = await handle.result()
    assert [s.role for s in result.subtasks] == ["hand", "reader"]
    assert result.warnings == ["the team has no role 'raeder': hand does t1"]
    events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [(e.subtask_id, e.data) for e in events if e.type == "role_unknown"] == [
        ("t1", {"role": "raeder", "by": "hand"})
    ]


async def test_auto_goes_step_by_step_and_chooses_the_next_role_by_what_was_found(lab: Lab) -> None:
    turns = {"t1": lambda step: text("the pears lie in the barn\n\nConfidence: 0.8")}
    lab.play(
        plans(
            subtasks(item("t1", "reader"), strategy="step", direct_answer=None),
            subtasks(item("t2", "reckoner", depends_on=["t1"]), finished=False),
            FINISHED,
            turns=turns,
        )
    )
    handle = await lab.start()
    result = await handle.result()
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "plan.2.1", "t2/1/turn.1", "plan.3.1", "synthesis.1"]
    assert (result.status, result.plan_revisions) == ("completed", 2)
    assert [(s.id, s.role, s.state) for s in result.subtasks] == [
        ("t1", "reader", "completed"),
        ("t2", "reckoner", "completed"),
    ]
    second = lab.prompt("plan.2.1")
    assert '<planned id="t1" role="reader" state="completed">' in second
    assert "the pears lie in the barn" in second
    assert "the pears lie in the barn" in lab.prompt("t2/1/turn.1")
    assert [s.id for s in (await handle.query(SupervisorWorkflow.plan)).subtasks] == ["t1", "t2"]
    events = [e.type for e in (await handle.query(SupervisorWorkflow.trace)).events]
    assert events.count("plan_accepted") == 2


async def test_steps_end_at_the_cap(lab: Lab) -> None:
    lab.play(plans(subtasks(item("t1")), subtasks(item("t2")), subtasks(item("t3"))))
    result = await lab.run(strategy="step", max_subtasks=2)
    assert [s.id for s in result.subtasks] == ["t1", "t2"]
    assert result.status == "completed"
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "plan.2.1", "t2/1/turn.1", "synthesis.1"]
