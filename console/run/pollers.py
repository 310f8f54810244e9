"""The Workers that serve a queue, as the server knows them."""

from datetime import UTC, datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from console import console_limits

WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> list[str]:
    """Returns the identities of the Workers that polled a queue a moment ago."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind),
        timeout=console_limits.RPC_TIMEOUT,
    )
    oldest = datetime.now(UTC) - console_limits.POLLER_FRESH
    return sorted(
        {p.identity for p in described.pollers if p.last_access_time.ToDatetime(tzinfo=UTC) >= oldest},
    )
