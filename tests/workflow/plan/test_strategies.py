"""How a run works: a plan up front, step by step, one role, a direct answer, the plan of a caller; plans change."""

import asyncio

from tests.scripted_model import as_json, text, when
from tests.waiting import until
from tests.workflow.runs import GOAL, Lab, events, partial_result
from tests.workflow.scripts import FOUND, GIVES_UP, item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew", "max_turns": 1}


FINISHED = as_json({"finished": True, "subtasks": [], "new_roles": []})


async def test_route_gives_the_whole_goal_to_one_role(lab: Lab) -> None:
    """Its finding is the answer, word for word."""
    route = as_json({"role": "reckoner", "secondary_role": None, "description": "Weigh all pears."})
    code = "def weigh(pears):\n    return sum(pears)\n" + "# and so on\n" * 400
    lab.play(plans(route, turns={"t1": lambda step: text(f"{code}\nConfidence: 0.5\nLimitations: none")}))
    handle = await lab.start(strategy="route", max_reviews=3)
    result = await handle.result()
    assert [(s.id, s.role, s.description) for s in result.subtasks] == [("t1", "reckoner", GOAL)], "its own words"
    assert [c.subtask_ids for c in result.citations] == [["t1"]]
    assert (result.status, result.answer.strip(), result.confidence) == ("completed", code.strip(), 0.5)
    assert "finding_adopted" in await events(handle)
    assert lab.steps == ["plan.1.1", "t1/1/turn.1"]
    schema = lab.calls[0].step.body["output_config"]["format"]["schema"]
    roles = ["hand", "reader", "librarian", "reckoner", "solo", "pupil", "far", "abroad"]
    assert schema["properties"]["role"]["enum"] == roles


async def test_auto_goes_step_by_step_and_chooses_the_next_role_by_what_was_found(lab: Lab) -> None:
    turns = {"t1": lambda step: text("the pears lie in the barn\n\nConfidence: 0.8")}
    lab.play(
        plans(
            subtasks(
                item("t1", "reader", reasoning="It reads."), strategy="step", direct_answer=None, reasoning="One fact."
            ),
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
    events = (await handle.query(SupervisorWorkflow.trace)).events
    reasons = [(e.type, e.data["reasoning"]) for e in events if e.data.get("reasoning")]
    assert reasons[:2] == [("plan_accepted", "One fact."), ("subtask_started", "It reads.")]
    accepted = [e.data["plan"] for e in events if e.type == "plan_accepted"]
    one = {"id": "t1", "role": "reader", "description": "Find out about part t1 of garden 1", "depends_on": []}
    assert (accepted[0], len(accepted)) == ([one], 2)
    assert [e.data["description"] for e in events if e.type == "subtask_started"][0] == one["description"]
    assert "<plan_reasoning>" in lab.prompt("synthesis.1"), "why it was divided so reaches the author of the answer"


async def test_a_planner_that_needs_no_more_steps_is_asked_once_more_only_of_something_else(lab: Lab) -> None:
    """A subtask that a person has done again meanwhile, with the finding it had, is nothing else."""
    go = asyncio.Event()
    first = subtasks(item("t1", "reader"), finished=False)
    lab.play(plans(first, when(go, FINISHED), turns={"t1": lambda step: FOUND}))
    handle = await lab.start(strategy="step")
    await until(lab.sent("plan.2.1"))
    await handle.execute_update("retry_subtask", {"subtask_id": "t1", "instruction": "once more"})
    go.set()
    result = await handle.result()
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "plan.2.1", "t1/2/turn.1", "synthesis.1"]
    assert result.usage.model_calls == len(lab.steps), "an answer that is read again is not booked again"


async def test_steps_end_at_the_cap_and_the_generalist_does_what_no_role_is_for(lab: Lab) -> None:
    lab.play(plans(subtasks(item("t1", "raeder")), subtasks(item("t2", "reader")), subtasks(item("t3"))))
    result = await lab.run(strategy="step", max_subtasks=2)
    assert [(s.id, s.role) for s in result.subtasks] == [("t1", "hand"), ("t2", "reader")]
    assert (result.status, result.warnings) == ("completed", ["the team has no role 'raeder': hand does t1"])
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "plan.2.1", "t2/1/turn.1", "synthesis.1"]


NOTHING = as_json({"reasoning": "", "subtasks": [], "new_roles": []})


# --- The caller's own plan ------------------------------------------------------------------------


async def test_a_callers_plan_that_cannot_run_fails_at_once_with_its_problems(lab: Lab) -> None:
    own = {"id": "a", "description": "Weigh the pears of 1990", "role": "rekoner"}
    error = await lab.failure(plan={"subtasks": [own]})
    assert error.type == "InvalidPlan"
    assert "'rekoner' is not a role of the team, did you mean 'reckoner'?" in error.message
    assert lab.steps == []


# --- What users read when nothing worked ----------------------------------------------------------


async def test_a_failed_run_says_what_its_team_wants_said_and_what_is_missing(lab: Lab) -> None:
    role = {"name": "hand", "description": "Works.", "system_prompt": "You work."}
    team = {"name": "desk", "generalist": "hand", "roles": [role], "on_failure": "Call the desk: 555-0100."}
    lab.play(plans(subtasks(item("t1")), NOTHING, turns={"t1": lambda step: GIVES_UP}))
    error = await lab.failure(team=team, max_turns=1)
    assert (error.type, error.message.startswith("Call the desk: 555-0100. (no subtask succeeded")) == (
        "AllSubtasksFailed",
        True,
    )
    answer = partial_result(error).answer
    assert answer.startswith("Call the desk: 555-0100.\n\n**Missing from this answer**\n\n- Find out about part t1")


async def test_a_run_without_an_answer_may_say_so_and_complete(lab: Lab) -> None:
    role = {"name": "hand", "description": "Works.", "system_prompt": "You work."}
    team = {"name": "desk", "generalist": "hand", "roles": [role], "on_failure": "Call the desk: 555-0100."}
    asked = {"team": team, "max_turns": 1, "on_no_answer": "answer"}
    lab.play(plans(subtasks(item("t1"), item("t2")), NOTHING, turns={"t1": lambda step: GIVES_UP}))
    result = await lab.run(success="all", **asked)
    assert result.answer.startswith("Call the desk: 555-0100.\n\n**Missing from this answer**\n\n")
    assert (result.status, result.confidence) == ("partial", 0.0)
    assert [gap.subtask_id for gap in result.gaps] == ["t1", "t2"]
    assert "its finding is not in the answer" in result.gaps[1].reason
    assert any(warning.startswith("there is no answer: QuorumNotMet: ") for warning in result.warnings)

    other = lab.named(f"{lab.run_id}-request")
    other.play(plans(NOTHING, NOTHING, NOTHING))
    assert (await other.failure(**asked)).type == "NoSubtasks", "a request that cannot be carried out fails"


async def test_a_role_labels_its_answer(lab: Lab) -> None:
    role = {"name": "lawyer", "description": "Knows law.", "system_prompt": "You advise."}
    routes = [{"pattern": "garden", "role": "lawyer"}]
    team = {"name": "desk", "generalist": "lawyer", "roles": [{**role, "label": "Legal expert"}], "routes": routes}
    lab.play(plans(NOTHING, turns={"t1": lambda step: FOUND}))
    result = await lab.run(team=team)
    assert result.answer == "**Legal expert**\n\nfound it"
    assert lab.steps == ["t1/1/turn.1"]
