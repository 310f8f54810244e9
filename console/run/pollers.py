"""The Workers that serve a queue and the rate at which they may, as the server knows them."""

from datetime import UTC, datetime

from temporalio.api.enums.v1 import RateLimitSource, TaskQueueType
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


async def limited(client: Client, queue: str) -> str | None:
    """Returns the rate that bounds a queue of activities, and why; None if only the server's own limits do."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=ACTIVITIES,
            report_config=True,
        ),
        timeout=console_limits.RPC_TIMEOUT,
    )
    effective = described.effective_rate_limit
    rate = f"{effective.requests_per_second * 60:.4g} calls a minute"
    if effective.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_WORKER:
        return f"{rate}, by SUPERVISOR_MODEL_RPM of its Workers"
    if effective.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_API:
        config = described.config.queue_rate_limit.metadata
        return f"{rate}, {config.reason or 'set by ' + (config.update_identity or 'somebody')}"
    return None
