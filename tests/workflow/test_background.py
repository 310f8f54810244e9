"""Work that nobody awaits: what it does not expect stops the workflow, in place of getting lost."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.history.v1 import WorkflowTaskFailedEventAttributes
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.waiting import until
from workflows.background import in_background


@workflow.defn
class Fragile:
    """Waits for an hour, while work in the background fails after a moment."""

    async def _work(self) -> None:
        await workflow.sleep(timedelta(milliseconds=1))
        raise KeyError("a fault of the code")

    @workflow.run
    async def run(self) -> None:
        work = in_background(self._work())
        await workflow.sleep(timedelta(hours=1))
        work.cancel()


async def failed_tasks(handle: WorkflowHandle[Any, Any]) -> list[WorkflowTaskFailedEventAttributes]:
    """Returns the workflow tasks that failed."""
    return [
        event.workflow_task_failed_event_attributes
        async for event in handle.fetch_history_events()
        if event.HasField("workflow_task_failed_event_attributes")
    ]


async def test_a_fault_in_the_background_fails_the_workflow_task(client: Client, run_id: str) -> None:
    runner = UnsandboxedWorkflowRunner()
    async with Worker(client, task_queue=run_id, workflows=[Fragile], workflow_runner=runner):
        handle = await client.start_workflow(Fragile.run, id=run_id, task_queue=run_id)

        async def is_seen() -> bool:
            return bool(await failed_tasks(handle))

        await until(is_seen)
        await handle.terminate()
    (first, *_) = await failed_tasks(handle)
    assert first.failure.application_failure_info.type == "KeyError"
    assert "a fault of the code" in first.failure.message


async def test_work_that_is_cancelled_before_it_begins_does_nothing() -> None:
    begun = []

    async def work() -> None:
        begun.append(True)

    task = in_background(work())
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert begun == []
