"""Plans that change: failed work is planned anew under every rule, and what is missing is added."""

from typing import Any

from tests.scripted_model import as_json
from tests.workflow.runs import Lab, partial_result
from tests.workflow.scripts import FOUND, GIVES_UP, item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "crew", "max_turns": 1}


NOTHING = as_json({"reasoning": "", "subtasks": [], "new_roles": []})


def failing(*subtask_ids: str) -> dict[str, Any]:
    return {subtask_id: lambda step: GIVES_UP for subtask_id in subtask_ids}


async def test_when_everything_failed_there_is_another_plan_before_the_run_fails(lab: Lab) -> None:
    revision = subtasks(item("t2", "reader", replaces=["t1"]))
    lab.play(plans(subtasks(item("t1")), revision, turns=failing("t1")))
    result = await lab.run(max_replans=1)
    assert [(s.id, s.state) for s in result.subtasks] == [("t1", "failed"), ("t2", "completed")]
    assert result.status == "completed"


async def test_optional_work_that_failed_is_not_planned_anew(lab: Lab) -> None:
    first = subtasks(item("t1", importance="optional"), item("t2"))
    lab.play(plans(first, NOTHING, turns=failing("t1")))
    await lab.run(max_replans=2)
    assert "plan.2.1" not in lab.steps


# --- The caller's own plan ------------------------------------------------------------------------

OWN = {"subtasks": [{"id": "a", "description": "Weigh the pears of 1990", "role": "reckoner"}]}


async def test_a_callers_plan_is_worked_on_and_no_planner_is_asked(lab: Lab) -> None:
    lab.play(plans(subtasks(item("t9")), turns={"a": lambda step: FOUND}))
    result = await lab.run(plan=OWN)
    assert [(s.id, s.role, s.state) for s in result.subtasks] == [("a", "reckoner", "completed")]
    assert lab.steps == ["a/1/turn.1", "synthesis.1"]


async def test_a_callers_plan_that_cannot_run_fails_at_once_with_its_problems(lab: Lab) -> None:
    error = await lab.failure(plan={"subtasks": [{**OWN["subtasks"][0], "role": "rekoner"}]})
    assert error.type == "InvalidPlan"
    assert "'rekoner' is not a role of the team, did you mean 'reckoner'?" in error.message
    assert lab.steps == []


# --- What users read when nothing worked ----------------------------------------------------------


async def test_a_failed_run_says_what_its_team_wants_said_and_what_was_tried(lab: Lab) -> None:
    role = {"name": "hand", "description": "Works.", "system_prompt": "You work."}
    team = {"name": "desk", "generalist": "hand", "roles": [role], "on_failure": "Call the desk: 555-0100."}
    lab.play(plans(subtasks(item("t1")), NOTHING, turns=failing("t1")))
    error = await lab.failure(team=team, max_turns=1)
    assert (error.type, error.message.startswith("Call the desk: 555-0100. (no subtask succeeded")) == (
        "AllSubtasksFailed",
        True,
    )
    answer = partial_result(error).answer
    assert answer.startswith("Call the desk: 555-0100.\n\n**What was tried**")
    assert "- Find out about part t1 of garden 1 (3 attempts by hand, failed: TurnLimit)" in answer


async def test_a_role_limits_what_its_turns_may_write_and_labels_its_answer(lab: Lab) -> None:
    role = {"name": "lawyer", "description": "Knows law.", "system_prompt": "You advise.", "max_tokens": 600}
    routes = [{"pattern": "garden", "role": "lawyer"}]
    team = {"name": "desk", "generalist": "lawyer", "roles": [{**role, "label": "Legal expert"}], "routes": routes}
    lab.play(plans(NOTHING, turns={"t1": lambda step: FOUND}))
    result = await lab.run(team=team)
    assert result.answer == "**Legal expert**\n\nfound it"
    assert lab.steps == ["t1/1/turn.1"]
    assert lab.calls[0].step.body["max_tokens"] == 600


async def test_reasons_of_plan_and_roles_are_in_the_trace(lab: Lab) -> None:
    shape = subtasks(item("t1", reasoning="It weighs."), reasoning="One fact.")
    lab.play(plans(shape))
    handle = await lab.start()
    await handle.result()
    noted = {event.type: event.data for event in (await handle.query(SupervisorWorkflow.trace)).events}
    assert noted["plan_accepted"]["reasoning"] == "One fact."
    assert noted["subtask_started"]["reasoning"] == "It weighs."
