"""A Worker process that takes no workflow tasks while they wait is ended: its successor and others go on with them.

The SDK can lose a workflow task with the slot that it was taken for (temporalio 1.35.0, when a workflow leaves a full
cache while tasks wait for its place: "Extra buffered run should not have produced an activation"). A Worker that has
lost all its slots polls no more, and says nothing. The server knows both: how long tasks have waited, and who polled.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from supervision import limits


@contextlib.asynccontextmanager
async def taking_tasks(client: Client, queue: str | None, end: Callable[[str], object]) -> AsyncIterator[None]:
    """Calls `end` with the reason once the Worker with that client's identity has left workflow tasks to wait.

    Does nothing without a queue.
    """
    watching = asyncio.create_task(_watch(client, queue, end)) if queue else None
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()


async def _watch(client: Client, queue: str, end: Callable[[str], object]) -> None:
    """Looks again and again: one look alone may come before the first poll of a process that was paused."""
    untaken = 0
    while untaken < limits.TASK_WATCH_LOOKS:
        await asyncio.sleep(limits.TASK_WATCH_PERIOD.total_seconds())
        untaken = untaken + 1 if await _leaves_tasks(client, queue) else 0
    silence = limits.TASKS_UNTAKEN.total_seconds()
    end(f"workflow tasks wait, and this process has asked for none for {silence:g} s")


async def _leaves_tasks(client: Client, queue: str) -> bool:
    """True if tasks have waited for longer than a poll takes, and this Worker has not begun one in that time."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        report_stats=True,
    )
    try:
        described = await client.workflow_service.describe_task_queue(request, timeout=limits.CONNECT_TIMEOUT)
    except RPCError:
        return False
    waited: timedelta = described.stats.approximate_backlog_age.ToTimedelta()
    oldest = datetime.now(UTC) - limits.TASKS_UNTAKEN
    polls = [p.last_access_time.ToDatetime(UTC) for p in described.pollers if p.identity == client.identity]
    return waited > limits.TASKS_UNTAKEN and all(at < oldest for at in polls)
