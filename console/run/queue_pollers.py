"""Who serves the task queues: Workers that polled them a moment ago."""

from datetime import UTC, datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from console import console_limits
from console.access import server_address
from console.command_errors import UNREACHABLE, CommandFailed
from supervision.queues import MODEL_QUEUE, WORKFLOW_QUEUE

WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> list[str]:
    """The identities of the Workers that serve a queue."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind),
        timeout=console_limits.RPC_TIMEOUT,
    )
    oldest = datetime.now(UTC) - console_limits.POLLER_FRESH
    return sorted(
        {p.identity for p in described.pollers if p.last_access_time.ToDatetime(tzinfo=UTC) >= oldest},
    )


async def unserved(client: Client) -> str | None:
    """Why a run would not move now, and what to do about it; None when both of its queues are served."""
    where = server_address(client)
    if not await pollers(client, WORKFLOW_QUEUE, WORKFLOWS):
        return (
            f"no worker serves queue '{WORKFLOW_QUEUE}' at {where}: start one with `python worker_main.py` "
            "(it needs ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL), or pass --queue-anyway"
        )
    if not await pollers(client, MODEL_QUEUE, ACTIVITIES):
        return (
            f"no worker makes model calls (queue '{MODEL_QUEUE}' at {where}): set ANTHROPIC_API_KEY or "
            "ANTHROPIC_BASE_URL and start one with `python worker_main.py`, or pass --queue-anyway"
        )
    return None


async def require_workers(client: Client) -> None:
    """CommandFailed when nobody would take a run up."""
    if why := await unserved(client):
        raise CommandFailed(UNREACHABLE, why)
