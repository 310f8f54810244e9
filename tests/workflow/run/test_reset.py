"""`temporal workflow reset` to any point: nothing finished or under way is done twice, and the clock begins anew."""

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from runtime.workers import workflow_runner
from supervision.contract.result import RunResult
from supervision.contract.updates import ExtendLimits
from tests.scripted_model import Reply, Step, plan, script, text, tools, when
from tests.waiting import until
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Handle, Lab, end_soon, events, failure
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

AT_ONCE, TURNS = ("t1", "t2", "t3"), 2


def agents_calls(lab: Lab) -> Counter[str]:
    return Counter(step for step in lab.steps if "/turn." in step)


def repeated(lab: Lab) -> list[str]:
    """Returns the calls that were sent more than once."""
    return [step for step, times in Counter(lab.steps).items() if times > 1]


def two_turns(step: Step) -> Reply:
    return tools(("lookup", {"query": "x"})) if step.number == 1 else text(f"found by {step.subtask_id}")


async def replays(client: Client, handle: Handle) -> None:
    history: WorkflowHistory = await handle.fetch_history()
    replayer = Replayer(
        workflows=[SupervisorWorkflow, WorkerAgentWorkflow],
        workflow_runner=workflow_runner(),
        data_converter=client.data_converter,
    )
    await replayer.replay_workflow(history)


def books_all(result: RunResult, lab: Lab) -> bool:
    """True if the agents' calls are booked, each once."""
    return sum(report.usage.model_calls for report in result.subtasks) == sum(agents_calls(lab).values())


async def test_a_reset_to_any_workflow_task_pays_nothing_again(lab: Lab) -> None:
    shape = plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t1"]})
    lab.play(script(shape, dict.fromkeys(AT_ONCE, two_turns)))
    base = await lab.start(team="lab", max_reviews=1)
    whole = await base.result()
    for point in await workflow_tasks(base):
        handle = await reset(lab.client, base, point)
        result = await handle.result()
        assert (result.status, result.answer) == ("completed", whole.answer)
        assert {report.attempts for report in result.subtasks} == {1}
        assert repeated(lab) == []
        assert books_all(result, lab)
        await replays(lab.client, handle)


async def test_a_reset_starts_worker_agents_again_and_repeats_only_the_calls_in_flight(lab: Lab) -> None:
    released = asyncio.Event()

    def turns(step: Step) -> Reply:
        return two_turns(step) if step.number == 1 else when(released, text("found"))

    shape = plan(*[{"id": subtask_id} for subtask_id in AT_ONCE])
    lab.play(script(shape, dict.fromkeys(AT_ONCE, turns)))
    base = await lab.start()
    await until(lab.sent(*(f"{subtask_id}/1/turn.2" for subtask_id in AT_ONCE)))
    handle = await reset(lab.client, base, (await workflow_tasks(base))[0])
    await until(lambda: all(lab.steps.count(f"{subtask_id}/1/turn.2") == 2 for subtask_id in AT_ONCE))
    released.set()
    result = await handle.result()
    assert result.status == "completed"
    assert sorted(repeated(lab)) == [f"{subtask_id}/1/turn.2" for subtask_id in AT_ONCE]
    assert {report.usage.model_calls for report in result.subtasks} == {TURNS}
    await replays(lab.client, handle)


async def test_a_reset_repeats_no_effect_of_a_write_tool(lab: Lab, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def turns(step: Step) -> Reply:
        return tools(("append", {"path": str(log)})) if step.number == 1 else text("it is written")

    lab.play(script(plan({"id": "t1", "role": "keeper"}), {"t1": turns}))
    base = await lab.start()
    await base.result()
    for point in await workflow_tasks(base):
        result = await (await reset(lab.client, base, point)).result()
        assert (result.status, result.warnings) == ("completed", [])
    assert len(log.read_text().splitlines()) == 1
    assert repeated(lab) == []


async def test_an_expired_run_goes_on_after_a_reset_with_new_limits(lab: Lab) -> None:
    slow = {"on": True}

    def turns(step: Step) -> Reply:
        if step.number == 1:
            return tools(("lookup", {"query": "x"}))
        return when(asyncio.Event(), text("never")) if slow["on"] else text("found at last")

    lab.play(script(plan({"id": "t1"}), {"t1": turns}))
    expired = await lab.start()
    await until(lab.sent("t1/1/turn.2"))
    await end_soon(expired)
    assert (await failure(expired)).type == "DeadlineExceeded"
    slow["on"] = False
    handle = await reset(lab.client, expired, (await workflow_tasks(expired))[0])
    reply = await handle.execute_update(SupervisorWorkflow.extend_limits, ExtendLimits(deadline=timedelta(minutes=2)))
    assert reply.accepted
    result = await handle.result()
    assert result.status == "completed"
    assert "run_reset" in await events(handle)
    calls = agents_calls(lab)
    assert (calls["t1/1/turn.1"], calls["t1/1/turn.2"]) == (1, 2)  # the finished turn is not made again
    assert result.subtasks[0].attempts == 1
    await replays(lab.client, handle)
