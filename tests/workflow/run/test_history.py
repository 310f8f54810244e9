"""What runs leave in history: little, and never more than the server takes."""

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from runtime.settings import Settings
from supervision.base import limits
from supervision.contract.request import Attachment
from tests.scripted_model import Reply, Step, as_json, plan, script, text, tools, when
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab, closed
from tests.workflow.scripts import reviewed, verdicts
from worker_main import serving
from workflows.run_context import STARTS_AT_ONCE


def turns_of(count: int, size: int = 500) -> Any:
    def turns(step: Step) -> Reply:
        return (
            tools(("lookup", {"query": f"part {step.number}", "size": size})) if step.number < count else text("done")
        )

    return turns


async def history_bytes(client: Client, workflow_id: str) -> int:
    described = await client.get_workflow_handle(workflow_id).describe()
    return described.raw_description.workflow_execution_info.history_size_bytes


async def payload_sizes(client: Client, workflow_id: str) -> list[int]:
    sizes = []
    async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
        sizes.append(event.ByteSize())
    return sizes


async def test_large_texts_everywhere_stay_out_of_history(lab: Lab) -> None:
    words = "swans " * 40_000
    subtasks = [{"id": f"t{i}", "description": f"Find part {i}: " + "about " * 500} for i in range(12)]
    shape = plan(*subtasks, {"id": "last", "after": [item["id"] for item in subtasks]})
    answer = {"answer": words, "confidence": 1, "citations": [], "contradictions": []}
    turns = {item["id"]: lambda step: text(words) for item in subtasks}
    lab.play(script(shape, turns, as_json(answer)))
    result = await lab.run(max_parallel=13, max_subtasks=13, goal="g" * 40_000)
    assert result.truncated
    assert len(result.answer) < len(words)
    sizes = [
        size
        for workflow_id in (lab.run_id, f"{lab.run_id}/t0/1", f"{lab.run_id}/last/1")
        for size in await payload_sizes(lab.client, workflow_id)
    ]
    assert max(sizes) < limits.PAYLOAD_HARD_BYTES
    assert sorted(sizes)[-2] < limits.PAYLOAD_AIM_BYTES * 1.2


async def test_attachments_reach_only_the_subtasks_that_list_them(lab: Lab) -> None:
    shape = plan({"id": "t1", "attachments": ["notes.txt"]}, {"id": "t2"})
    lab.play(script(shape))
    await lab.run(attachments=[Attachment(name="notes.txt", text="remember")])
    prompts = {call.step.subtask_id: call.step.prompt for call in lab.calls}
    assert '<attachment name="notes.txt">\nremember\n</attachment>' in prompts["t1"]
    assert "notes.txt" not in prompts["t2"]


@pytest.fixture(scope="module")
async def small_histories(settings: Settings) -> AsyncIterator[Client]:
    """A client of a server that suggests to continue as new after a few turns, and that Workers serve."""
    async with own_server({"limit.historyCount.suggestContinueAsNew": 20}) as client, serving(client, settings):
        yield client


async def continued(client: Client, workflow_id: str) -> bool:
    """True if an execution continued an earlier one."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    assert len(history.events) < 60
    return bool(history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id)


async def test_a_finding_is_corrected_in_a_conversation_that_continued_as_new_at_the_servers_suggestion(
    small_histories: Client, lab: Lab
) -> None:
    usual = turns_of(12, 5)

    def turns(step: Step) -> Reply:
        return usual(step) if step.attempt == 1 else text("corrected pears")

    lab.play(reviewed(plan({"id": "t1"}), verdicts(t1="name the unit"), verdicts(), turns={"t1": turns}))
    result = await runs.run(small_histories, lab.run_id, "lab", max_turns=30, max_reviews=1)
    assert await continued(small_histories, f"{lab.run_id}/t1/1")
    assert (result.status, result.subtasks[0].turns, result.usage.tool_calls) == ("completed", 13, 11)
    assert result.subtasks[0].finding is not None
    assert (result.subtasks[0].attempts, result.subtasks[0].finding.summary) == (2, "corrected pears")
    asked = lab.call("t1/2/turn.1").step.body["messages"]
    assert sum(message["role"] == "assistant" for message in asked) == 12
    assert "name the unit" in str(asked[-1])
    assert len(lab.steps) == len(set(lab.steps))


async def test_a_worker_agent_that_continued_as_new_can_be_cancelled(small_histories: Client, lab: Lab) -> None:
    usual, never = turns_of(30, 5), asyncio.Event()
    turns = {"t1": lambda step: when(never, text("no")) if step.number == 10 else usual(step)}
    lab.play(script(plan({"id": "t1"}), turns))
    handle = await runs.start(small_histories, lab.run_id, team="lab", max_turns=30)
    await until(lab.sent("t1/1/turn.10"), 30)
    await handle.cancel()
    await until(functools.partial(closed, handle))
    child = await small_histories.get_workflow_handle(f"{lab.run_id}/t1/1").describe()
    assert child.status is WorkflowExecutionStatus.COMPLETED
    assert await continued(small_histories, child.id)
    await until(lambda: lab.calls[-1].aborted_at is not None)


async def test_many_subtasks_that_are_ready_together_start_in_portions_and_leave_a_small_history(lab: Lab) -> None:
    """A portion is what one message to the server and one workflow task can take."""
    lab.play(script(plan(*[{"id": f"t{i}"} for i in range(60)])))
    result = await lab.run(max_subtasks=60, max_parallel=60)
    assert (result.status, len(result.subtasks)) == ("completed", 60)
    started = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_task_completed_event_id
        for event in await lab.scheduled("child")
    ]
    assert len(started) == 60
    assert max(Counter(started).values()) <= STARTS_AT_ONCE < 60
    described = await lab.client.get_workflow_handle(lab.run_id).describe()
    info = described.raw_description.workflow_execution_info
    assert info.history_length < 600
    assert info.history_size_bytes < 600_000
    assert len(await lab.scheduled("timer")) == 1
