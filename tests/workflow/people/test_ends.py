"""An update that was accepted is heeded, in each phase; a run that is cancelled while it closes keeps its result."""

import asyncio
import functools
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from activities.store.artifacts import ArtifactStore, ArtifactUnavailable
from tests.scripted_model import Step, answer, as_json, plan, script, when
from tests.waiting import until
from tests.workflow.plan.test_approval import ONE, decide, proposed
from tests.workflow.runs import Handle, Lab, search_attribute, status_of
from tests.workflow.scripts import FOUND, IMPOSSIBLE, item, subtasks


async def is_cancel_asked(handle: Handle) -> bool:
    """True if the history has the request of a cancellation, and the workflow has seen it."""
    kinds = [event.event_type async for event in handle.fetch_history_events()]
    if EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED not in kinds:
        return False
    since = kinds[kinds.index(EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED) :]
    return EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED in since


async def test_a_retry_that_was_accepted_is_done_though_the_planner_needs_no_step(lab: Lab) -> None:
    gate = asyncio.Event()
    steps: list[Any] = [
        subtasks(item("t1", "hand"), finished=False),
        when(gate, as_json({"finished": True, "subtasks": []})),
    ]
    turns: list[str] = []

    def play(step: Step) -> Any:
        if step.kind == "plan":
            return steps.pop(0) if len(steps) > 1 else steps[0]
        if step.kind == "turn":
            turns.append(step.call)
            return IMPOSSIBLE if len(turns) < 2 else FOUND
        return answer() if step.kind == "synthesis" else as_json({"verdicts": [], "conflicts": []})

    lab.play(play)
    handle = await lab.start(team="crew", strategy="step")
    await until(lab.sent("plan.2.1"))
    said = await handle.execute_update("retry_subtask", {"subtask_id": "t1", "instruction": "look elsewhere"})
    assert said["accepted"]
    gate.set()
    result = await handle.result()
    assert [(report.id, report.state) for report in result.subtasks] == [("t1", "completed")]


async def test_a_failed_run_that_is_cancelled_while_its_result_is_stored_fails_with_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, create = [True], ArtifactStore.create

    async def created(self: ArtifactStore, key: str, data: bytes) -> bool:
        if away[0] and lab.run_id in key and "ended" in key:
            raise ArtifactUnavailable("the store is away")
        return await create(self, key, data)

    monkeypatch.setattr(ArtifactStore, "create", created)
    handle = await proposed(lab, script(plan(ONE)))
    await decide(handle, 1, "reject", comment="too dear")

    async def is_failing() -> bool:
        return (await status_of(handle)).phase == "failed"

    await until(is_failing)
    await handle.cancel()
    await until(functools.partial(is_cancel_asked, handle))
    away[0] = False
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "PlanRejected"
    assert cause.details[0]["result_ref"]
    assert (await search_attribute(handle, "SupervisorStatus")) == "failed"


async def test_a_run_that_is_cancelled_while_its_answer_is_stored_has_completed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, gate, create = asyncio.Event(), asyncio.Event(), ArtifactStore.create

    async def created(self: ArtifactStore, key: str, data: bytes) -> bool:
        is_new = await create(self, key, data)
        if lab.run_id in key and "ended" in key:
            stored.set()
            await gate.wait()
        return is_new

    monkeypatch.setattr(ArtifactStore, "create", created)
    lab.play(script(plan(ONE), {ONE["id"]: lambda step: FOUND}))
    handle = await lab.start()
    await asyncio.wait_for(stored.wait(), 30)
    await handle.cancel()
    await until(functools.partial(is_cancel_asked, handle))
    gate.set()
    result = await handle.result()
    assert result.status == "completed"
    assert (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED
    assert (await search_attribute(handle, "SupervisorStatus")) == "completed"
    activities = [event.activity_task_scheduled_event_attributes for event in await lab.scheduled("activity")]
    assert [each.activity_type.name for each in activities].count("publish_result") == 1
