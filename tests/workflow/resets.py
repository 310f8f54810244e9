"""Resetting a run as `temporal workflow reset` does."""

from uuid import uuid4

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client

from tests.workflow.runs import Handle
from workflows.supervisor import SupervisorWorkflow


async def workflow_tasks(handle: Handle) -> list[int]:
    """Returns the events at which a run can be reset: the ends of its workflow tasks."""
    return [
        event.event_id
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    ]


async def reset(client: Client, base: Handle, event_id: int) -> Handle:
    """Resets an execution of a run to one of its workflow tasks; returns a handle of the execution that goes on."""
    answer = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=base.id, run_id=base.first_execution_run_id or ""),
            reason="a test",
            workflow_task_finish_event_id=event_id,
            request_id=str(uuid4()),
        )
    )
    return client.get_workflow_handle_for(SupervisorWorkflow.run, base.id, run_id=answer.run_id)
