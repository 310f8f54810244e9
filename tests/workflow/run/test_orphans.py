"""After a reset that leads to another plan nothing goes on that the new execution does not know."""

import asyncio

from temporalio.client import WorkflowExecutionStatus

from tests.scripted_model import Reply, Step, hang, plan, script, text, when
from tests.waiting import until
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Lab
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import tree

FOUND = text("found it\n\nConfidence: 0.8\nLimitations: none")


async def states(lab: Lab, *places: str) -> list[WorkflowExecutionStatus | None]:
    """Returns how the workflows at those places below the run stand."""
    handles = [lab.client.get_workflow_handle(f"{lab.run_id}/{place}") for place in places]
    return [(await handle.describe()).status for handle in handles]


async def test_agents_of_the_plan_before_a_reset_are_ended(lab: Lab) -> None:
    """They are steered to another plan: the word is heard before the plan is asked for again."""

    def played(step: Step) -> Reply:
        if step.kind == "plan":
            return plan({"id": "t9"}) if "only the apples" in str(step.body) else plan({"id": "t1"}, {"id": "t2"})
        if step.kind == "turn":
            return FOUND if step.subtask_id == "t9" else hang()
        return usual(step)

    usual = script(plan({"id": "t1"}))
    lab.play(played)
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.1", "t2/1/turn.1"))
    await handle.execute_update("steer", {"text": "only the apples"})
    again = await reset(lab.client, handle, (await workflow_tasks(handle))[0])
    result = await asyncio.wait_for(again.result(), 60)
    assert [report.id for report in result.subtasks] == ["t9"]
    assert await states(lab, "t1/1", "t2/1") == [WorkflowExecutionStatus.TERMINATED] * 2
    assert await states(lab, "t9/1") == [WorkflowExecutionStatus.COMPLETED]


async def test_children_that_are_started_again_under_their_ids_are_left_alone(lab: Lab) -> None:
    released = asyncio.Event()
    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), dict.fromkeys(("t1", "t2"), lambda step: when(released, FOUND))))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.1", "t2/1/turn.1"))
    again = await reset(lab.client, handle, (await workflow_tasks(handle))[0])
    await until(lambda: lab.steps.count("t1/1/turn.1") > 1)
    released.set()
    result = await asyncio.wait_for(again.result(), 60)
    assert (result.status, [report.attempts for report in result.subtasks]) == ("completed", [1, 1])


async def test_a_nested_run_of_before_a_reset_ends_with_its_agents(lab: Lab) -> None:
    def played(step: Step) -> Reply:
        if step.call == f"{lab.run_id}/plan.1.1" and "only the apples" in str(step.body):
            return subtasks(item("t9", "walker"))
        return FOUND if step.subtask_id == "t9" else usual(step)

    plans = {"": subtasks(item("t1", "storey")), "t1/1": subtasks(item("t1", "walker"))}
    usual = tree(plans, **{"/turn.1": hang()})
    lab.play(played)
    handle = await lab.start(team="house")
    await until(lab.sent("t1/1/t1/1/turn.1"))
    await handle.execute_update("steer", {"text": "only the apples"})
    again = await reset(lab.client, handle, (await workflow_tasks(handle))[0])
    await asyncio.wait_for(again.result(), 60)

    async def all_ended() -> bool:
        return await states(lab, "t1/1", "t1/1/t1/1") == [WorkflowExecutionStatus.TERMINATED] * 2

    await until(all_ended)
