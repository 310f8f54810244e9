"""The Workers that serve a queue, as the server knows them."""

from datetime import UTC, datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from console import console_limits

WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> dict[str, datetime]:
    """Returns the identities of the Workers that polled a queue a moment ago, each with the time of that."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind),
        timeout=console_limits.RPC_TIMEOUT,
    )
    oldest = datetime.now(UTC) - console_limits.POLLER_FRESH
    polled = [(p.identity, p.last_access_time.ToDatetime(tzinfo=UTC)) for p in described.pollers]
    return {identity: at for identity, at in sorted(polled) if at >= oldest}


def shown(workers: dict[str, datetime]) -> str:
    """Returns Workers as people read them: one that was killed stays listed for a while."""
    now = datetime.now(UTC)
    ages = {name: max(0, int((now - at).total_seconds())) for name, at in workers.items()}
    return ", ".join(f"{name} (polled {seconds} s ago)" for name, seconds in ages.items())
