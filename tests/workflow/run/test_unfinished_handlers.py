"""A message handler that still runs when its workflow ends is an error in tests: the workflow can not end."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle, WorkflowUpdateStage
from temporalio.worker import Worker

from runtime.workers import workflow_runner
from tests.waiting import until
from tests.workflow.run.unfinished import EndsTooEarly
from tests.workflow.runs import Lab


async def task_failures(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Returns the types of the errors that failed a workflow's tasks."""
    return [
        event.workflow_task_failed_event_attributes.failure.application_failure_info.type
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]


async def stuck_with(handle: WorkflowHandle[Any, Any], warning: str) -> bool:
    """True if a workflow's task failed for that warning; the workflow is ended then."""
    if warning not in await task_failures(handle):
        return False
    assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
    await handle.terminate()
    return True


@pytest.fixture
async def ends_too_early(lab: Lab) -> AsyncIterator[WorkflowHandle[Any, Any]]:
    """A workflow with a Worker of its own."""
    async with Worker(lab.client, task_queue=lab.run_id, workflows=[EndsTooEarly], workflow_runner=workflow_runner()):
        yield await lab.client.start_workflow(EndsTooEarly.run, id=lab.run_id, task_queue=lab.run_id)


async def test_an_unfinished_signal_handler_fails_the_workflow_task(ends_too_early: WorkflowHandle[Any, Any]) -> None:
    await ends_too_early.signal(EndsTooEarly.endless_signal)
    await ends_too_early.signal(EndsTooEarly.end)
    await until(lambda: stuck_with(ends_too_early, "UnfinishedSignalHandlersWarning"))


async def test_an_unfinished_update_handler_fails_the_workflow_task(ends_too_early: WorkflowHandle[Any, Any]) -> None:
    await ends_too_early.start_update(EndsTooEarly.endless_update, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    await ends_too_early.signal(EndsTooEarly.end)
    await until(lambda: stuck_with(ends_too_early, "UnfinishedUpdateHandlersWarning"))
