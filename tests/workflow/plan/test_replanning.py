"""Plans that change: failed work is planned anew under every rule, and what is missing is added."""

import functools
from typing import Any

import pytest
from temporalio.client import Client

from tests.scripted_model import Reply, ScriptedModel, Step, as_json, text
from tests.workflow import runs
from tests.workflow.runs import events, failure, partial_result, prompt
from tests.workflow.scripts import FOUND, GIVES_UP, Turns, item, plans, subtasks
from workflows.supervisor import SupervisorWorkflow

start = functools.partial(runs.start, team="crew", max_turns=1)

pytestmark = pytest.mark.usefixtures("worker")

NOTHING = as_json({"reasoning": "", "subtasks": [], "new_roles": []})


def failing(*subtask_ids: str) -> dict[str, Any]:
    return {subtask_id: lambda step: GIVES_UP for subtask_id in subtask_ids}


async def test_under_the_default_rule_failed_work_is_replaced(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    revision = subtasks(item("t3", "reader", replaces=["t1"]), reasoning="The yearbook may have it.")
    model.play(run_id, plans(subtasks(item("t1"), item("t2")), revision, turns=failing("t1")))
    handle = await start(client, run_id, max_replans=2)
    result = await handle.result()
    assert (result.status, result.plan_revisions, result.gaps) == ("completed", 2, [])
    asked = prompt(model, run_id, "plan.2.1")
    assert "TurnLimit: no finding after 1 turns (after 3 attempts)" in asked
    assert "<outcome>\nfinding of t2" in asked


async def test_when_everything_failed_there_is_another_plan_before_the_run_fails(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    revision = subtasks(item("t2", "reader", replaces=["t1"]))
    model.play(run_id, plans(subtasks(item("t1")), revision, turns=failing("t1")))
    result = await (await start(client, run_id, max_replans=1)).result()
    assert [(s.id, s.state) for s in result.subtasks] == [("t1", "failed"), ("t2", "completed")]
    assert result.status == "completed"


async def test_at_most_so_many_replans_and_then_the_run_ends(client: Client, model: ScriptedModel, run_id: str) -> None:
    roles = {2: "reader", 3: "librarian", 4: "solo"}  # a role that failed rests for a while
    replies = [subtasks(item("t1")), *(subtasks(item(f"t{n}", roles[n], replaces=[f"t{n - 1}"])) for n in roles)]
    model.play(run_id, plans(*replies, turns=failing("t1", "t2", "t3", "t4")))
    error = await failure(await start(client, run_id, max_replans=2))
    assert error.type == "AllSubtasksFailed"
    assert [step for step in model.steps(run_id) if step.startswith("plan")] == ["plan.1.1", "plan.2.1", "plan.3.1"]


async def test_a_planner_with_nothing_to_add_is_asked_once_for_the_same_failure(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(subtasks(item("t1"), item("t2")), NOTHING, turns=failing("t1")))
    result = await (await start(client, run_id, max_replans=2)).result()
    assert [gap.subtask_id for gap in result.gaps] == ["t1"]
    assert [step for step in model.steps(run_id) if step.startswith("plan")] == ["plan.1.1", "plan.2.1"]


async def test_optional_work_that_failed_is_not_planned_anew(client: Client, model: ScriptedModel, run_id: str) -> None:
    first = subtasks(item("t1", importance="optional"), item("t2"))
    model.play(run_id, plans(first, NOTHING, turns=failing("t1")))
    await (await start(client, run_id, max_replans=2)).result()
    assert "plan.2.1" not in model.steps(run_id)


# --- The caller's own plan ------------------------------------------------------------------------

OWN = {"subtasks": [{"id": "a", "description": "Weigh the pears of 1990", "role": "reckoner"}]}


async def test_a_callers_plan_is_worked_on_and_no_planner_is_asked(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, plans(subtasks(item("t9")), turns={"a": lambda step: FOUND}))
    result = await (await start(client, run_id, plan=OWN)).result()
    assert [(s.id, s.role, s.state) for s in result.subtasks] == [("a", "reckoner", "completed")]
    assert model.steps(run_id) == ["a/1/turn.1", "synthesis.1"]


@pytest.mark.parametrize(
    ("change", "kind", "problem"),
    [
        ({"depends_on": ["b"]}, "InvalidPlan", "depends on 'b', which is not in the plan"),
        ({"description": "Analyze the data"}, "InvalidPlan", "subtask 'a' is vague"),
        ({"role": "rekoner"}, "InvalidPlan", "'rekoner' is not a role of the team, did you mean 'reckoner'?"),
        ({"role": "auto", "capabilities": ["flying"]}, "NoCapableWorker", "needs the capability 'flying'"),
    ],
)
async def test_a_callers_plan_that_cannot_run_fails_at_once_with_its_problems(
    client: Client, model: ScriptedModel, run_id: str, change: dict[str, Any], kind: str, problem: str
) -> None:
    model.play(run_id, plans(subtasks(item("t9"))))
    error = await failure(await start(client, run_id, plan={"subtasks": [{**OWN["subtasks"][0], **change}]}))
    assert error.type == kind
    assert problem in error.message
    assert model.steps(run_id) == []


# --- Answers that are findings word for word ------------------------------------------------------


async def test_a_single_roles_finding_is_the_answer_word_for_word(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    route = as_json(
        {"role": "reckoner", "secondary_role": None, "description": "Weigh all pears.", "reasoning": "Sums"}
    )
    code = "def weigh(pears):\n    return sum(pears)\n" + "# and so on\n" * 400
    model.play(run_id, plans(route, turns={"t1": lambda step: text(f"{code}\nConfidence: 0.5\nLimitations: none")}))
    handle = await start(client, run_id, strategy="route", max_reviews=3)
    result = await handle.result()
    assert (result.status, result.answer.strip(), result.confidence) == ("completed", code.strip(), 0.5)
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1"]
    assert "finding_adopted" in await events(handle)


async def test_a_route_with_an_answer_schema_is_still_written(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    route = as_json({"role": "reckoner", "secondary_role": None, "description": "Weigh all pears."})
    schema = {"type": "object", "properties": {"kg": {"type": "number"}}, "required": ["kg"]}
    reply = as_json(
        {"answer": "Three.", "confidence": 0.9, "citations": [], "contradictions": [], "answer_json": {"kg": 3}}
    )
    model.play(run_id, plans(route, answer_reply=reply))
    result = await (await start(client, run_id, strategy="route", answer_schema=schema)).result()
    assert result.answer_json == {"kg": 3}
    assert model.steps(run_id)[-1] == "synthesis.1"


async def test_of_rival_answers_the_one_that_a_judge_chose_stands(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    def slogan(step: Step) -> Reply:
        return text(f"Slogan {'of t2' if '/t2/' in step.call else 'of t1'}\n\nConfidence: 0.8")

    turns: Turns = {"t1": slogan, "t2": slogan}
    usual = plans(subtasks(item("t1"), item("t2"), aggregation="select"), turns=turns)
    chosen = as_json({"choice": 2, "reason": "It is shorter."})
    model.play(run_id, lambda step: chosen if step.kind == "judge" else usual(step))
    result = await (await start(client, run_id)).result()
    assert result.answer == "Slogan of t2"
    assert "synthesis.1" not in model.steps(run_id)


# --- What users read when nothing worked ----------------------------------------------------------


async def test_a_failed_run_says_what_its_team_wants_said_and_what_was_tried(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    role = {"name": "hand", "description": "Works.", "system_prompt": "You work."}
    team = {"name": "desk", "generalist": "hand", "roles": [role], "on_failure": "Call the desk: 555-0100."}
    model.play(run_id, plans(subtasks(item("t1")), NOTHING, turns=failing("t1")))
    error = await failure(await runs.start(client, run_id, team=team, max_turns=1))
    assert (error.type, error.message.startswith("Call the desk: 555-0100. (no subtask succeeded")) == (
        "AllSubtasksFailed",
        True,
    )
    answer = partial_result(error).answer
    assert answer.startswith("Call the desk: 555-0100.\n\n**What was tried**")
    assert "- Find out about part t1 of garden 1 (3 attempts by hand, failed: TurnLimit)" in answer


async def test_a_role_limits_what_its_turns_may_write_and_labels_its_answer(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    role = {"name": "lawyer", "description": "Knows law.", "system_prompt": "You advise.", "max_tokens": 600}
    routes = [{"pattern": "garden", "role": "lawyer"}]
    team = {"name": "desk", "generalist": "lawyer", "roles": [{**role, "label": "Legal expert"}], "routes": routes}
    model.play(run_id, plans(NOTHING, turns={"t1": lambda step: FOUND}))
    result = await (await runs.start(client, run_id, team=team)).result()
    assert result.answer == "**Legal expert**\n\nfound it"
    assert model.steps(run_id) == ["t1/1/turn.1"]
    assert model.of(run_id)[0].step.body["max_tokens"] == 600


async def test_reasons_of_plan_and_roles_are_in_the_trace(client: Client, model: ScriptedModel, run_id: str) -> None:
    shape = subtasks(item("t1", reasoning="It weighs."), reasoning="One fact.")
    model.play(run_id, plans(shape))
    handle = await start(client, run_id)
    await handle.result()
    noted = {event.type: event.data for event in (await handle.query(SupervisorWorkflow.trace)).events}
    assert noted["plan_accepted"]["reasoning"] == "One fact."
    assert noted["subtask_started"]["reasoning"] == "It weighs."
