"""What runs leave in history: little, and never more than the server takes."""

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.api.sdk.v1 import EnhancedStackTrace
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

from runtime.settings import Settings
from supervision.base import limits
from supervision.contract.request import Attachment
from supervision.run import run_state, web_details
from tests.scripted_model import Reply, ScriptedModel, Step, as_json, plan, script, text, tools, when
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import call, closed, scheduled, sent
from tests.workflow.scripts import reviewed, verdicts
from worker_main import serving
from workflows.run_context import STARTS_AT_ONCE

run = functools.partial(runs.run, team="lab")


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


@pytest.mark.usefixtures("worker")
async def test_history_grows_with_the_turns_and_not_with_their_square(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    bytes_of = {}
    for turns in (8, 32):
        workflow_id = f"{run_id}-{turns}"
        model.play(workflow_id, script(plan({"id": "t1"}), {"t1": turns_of(turns)}))
        result = await run(client, workflow_id, max_turns=turns)
        assert result.subtasks[0].turns == turns
        bytes_of[turns] = await history_bytes(client, f"{workflow_id}/t1/1")
        assert max(await payload_sizes(client, f"{workflow_id}/t1/1")) < limits.PAYLOAD_AIM_BYTES
    assert bytes_of[32] <= 4.5 * bytes_of[8]


@pytest.mark.usefixtures("worker")
async def test_large_texts_everywhere_stay_out_of_history(client: Client, model: ScriptedModel, run_id: str) -> None:
    words = "swans " * 40_000
    subtasks = [{"id": f"t{i}", "description": f"Find part {i}: " + "about " * 500} for i in range(12)]
    shape = plan(*subtasks, {"id": "last", "after": [item["id"] for item in subtasks]})
    answer = {"answer": words, "confidence": 1, "citations": [], "contradictions": []}
    turns = {item["id"]: lambda step: text(words) for item in subtasks}
    model.play(run_id, script(shape, turns, as_json(answer)))
    result = await run(client, run_id, max_parallel=13, max_subtasks=13, goal="g" * 40_000)
    assert result.truncated
    assert len(result.answer) < len(words)
    sizes = [
        size
        for workflow_id in (run_id, f"{run_id}/t0/1", f"{run_id}/last/1")
        for size in await payload_sizes(client, workflow_id)
    ]
    assert max(sizes) < limits.PAYLOAD_HARD_BYTES
    assert sorted(sizes)[-2] < limits.PAYLOAD_AIM_BYTES * 1.2


@pytest.mark.usefixtures("worker")
async def test_attachments_reach_only_the_subtasks_that_list_them(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    shape = plan({"id": "t1", "attachments": ["notes.txt"]}, {"id": "t2"})
    model.play(run_id, script(shape))
    await run(client, run_id, attachments=[Attachment(name="notes.txt", text="remember")])
    prompts = {call.step.subtask_id: call.step.prompt for call in model.of(run_id)}
    assert '<attachment name="notes.txt">\nremember\n</attachment>' in prompts["t1"]
    assert "notes.txt" not in prompts["t2"]


@pytest.mark.usefixtures("worker")
async def test_an_attachment_that_was_never_stored_is_refused(client: Client, run_id: str) -> None:
    with pytest.raises(WorkflowFailureError) as caught:
        await run(client, run_id, attachments=[Attachment(name="a", ref="other-run/goal")])
    assert "use one that `put` prints" in str(caught.value.cause)


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
    small_histories: Client, model: ScriptedModel, run_id: str
) -> None:
    usual = turns_of(12, 5)

    def turns(step: Step) -> Reply:
        return usual(step) if step.attempt == 1 else text("corrected pears")

    model.play(run_id, reviewed(plan({"id": "t1"}), verdicts(t1="name the unit"), verdicts(), turns={"t1": turns}))
    result = await run(small_histories, run_id, max_turns=30, max_reviews=1)
    assert await continued(small_histories, f"{run_id}/t1/1")
    assert (result.status, result.subtasks[0].turns, result.usage.tool_calls) == ("completed", 13, 11)
    assert result.subtasks[0].finding is not None
    assert (result.subtasks[0].attempts, result.subtasks[0].finding.summary) == (2, "corrected pears")
    asked = call(model, run_id, "t1/2/turn.1").step.body["messages"]
    assert sum(message["role"] == "assistant" for message in asked) == 12
    assert "name the unit" in str(asked[-1])
    assert len(model.steps(run_id)) == len(set(model.steps(run_id)))


async def test_a_worker_agent_that_continued_as_new_can_be_cancelled(
    small_histories: Client, model: ScriptedModel, run_id: str
) -> None:
    usual, never = turns_of(30, 5), asyncio.Event()
    turns = {"t1": lambda step: when(never, text("no")) if step.number == 10 else usual(step)}
    model.play(run_id, script(plan({"id": "t1"}), turns))
    handle = await runs.start(small_histories, run_id, team="lab", max_turns=30)
    await until(sent(model, run_id, "t1/1/turn.10"), 30)
    await handle.cancel()
    await until(functools.partial(closed, handle))
    child = await small_histories.get_workflow_handle(f"{run_id}/t1/1").describe()
    assert child.status is WorkflowExecutionStatus.COMPLETED
    assert await continued(small_histories, child.id)
    await until(lambda: model.of(run_id)[-1].aborted_at is not None)


@pytest.mark.usefixtures("worker")
async def test_many_subtasks_that_are_ready_together_start_in_portions_and_leave_a_small_history(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    """A portion is what one message to the server and one workflow task can take."""
    model.play(run_id, script(plan(*[{"id": f"t{i}"} for i in range(60)])))
    result = await run(client, run_id, max_subtasks=60, max_parallel=60)
    assert (result.status, len(result.subtasks)) == ("completed", 60)
    started = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_task_completed_event_id
        for event in await scheduled(client, run_id, "child")
    ]
    assert len(started) == 60
    assert max(Counter(started).values()) <= STARTS_AT_ONCE < 60
    described = await client.get_workflow_handle(run_id).describe()
    info = described.raw_description.workflow_execution_info
    assert info.history_length < 600
    assert info.history_size_bytes < 600_000
    assert len(await scheduled(client, run_id, "timer")) == 1


@pytest.mark.usefixtures("worker")
async def test_the_stacks_that_the_web_ui_asks_for_are_shown(client: Client, model: ScriptedModel, run_id: str) -> None:
    """With the source files in it such an answer is larger than any payload of ours."""
    released = asyncio.Event()
    model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: when(released, text("found"))}))
    handle = await runs.start(client, run_id, team="lab")
    await until(lambda: "t1/1/turn.1" in model.steps(run_id))
    ids = (run_id, f"{run_id}/t1/1")
    asked = [client.get_workflow_handle(workflow_id) for workflow_id in ids]
    stacks = [await one.query("__enhanced_stack_trace", result_type=EnhancedStackTrace) for one in asked]
    released.set()
    assert (await handle.result()).status == "completed"
    for shown in stacks:
        files = {place.file_path for stack in shown.stacks for place in stack.locations}
        assert files
        assert all(shown.sources[file].content for file in files)
    assert max(shown.ByteSize() for shown in stacks) > limits.PAYLOAD_HARD_BYTES


@pytest.mark.usefixtures("worker")
async def test_the_details_are_rendered_only_when_somebody_looks(
    client: Client, model: ScriptedModel, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    markdown = web_details.markdown

    def counted(*parts: object) -> str:
        rendered.append(run_id)
        return markdown(*parts)  # type: ignore[arg-type]

    monkeypatch.setattr(run_state, "markdown", counted)
    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"})))
    handle = await runs.start(client, run_id, "lab")
    await handle.result()
    assert rendered == []
    assert "2 of 2 subtasks" in await runs.details(handle)
    assert rendered == [run_id]
