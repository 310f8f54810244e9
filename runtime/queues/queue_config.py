"""The rates of queues where Temporal keeps them: the configuration of a task queue's activities.

The server divides a rate between the partitions of a queue, and lets a queue that was idle send what a second allows
at once. A rate of the API stands above the one that Workers poll with.
"""

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import RateLimit, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, UpdateTaskQueueConfigRequest
from temporalio.client import Client
from temporalio.service import RPCError

from supervision import limits
from supervision.provider.queue_rates import QueueRates, QueueView, RatesUnavailable


class QueueConfig(QueueRates):
    """The rates of activity queues on a client's server and in its namespace."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, queue: str) -> QueueView:
        """Returns the queue. Raises RatesUnavailable."""
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_config=True,
            report_stats=True,
        )
        try:
            described = await self._client.workflow_service.describe_task_queue(
                request, timeout=limits.FOUND_RPC_TIMEOUT
            )
        except RPCError as error:
            raise RatesUnavailable(error.message) from error
        config = described.config.queue_rate_limit
        return QueueView(
            rate=config.rate_limit.requests_per_second if config.HasField("rate_limit") else None,
            reason=config.metadata.reason,
            version=_version(config.metadata.update_time),
            waiting=described.stats.approximate_backlog_count,
            dispatched=described.stats.tasks_dispatch_rate,
        )

    async def write(self, queue: str, rate: float | None, reason: str) -> str:
        """Sets a queue's rate. Returns the version of its configuration. Raises RatesUnavailable."""
        update = UpdateTaskQueueConfigRequest.RateLimitUpdate(
            rate_limit=None if rate is None else RateLimit(requests_per_second=rate), reason=reason
        )
        request = UpdateTaskQueueConfigRequest(
            namespace=self._client.namespace,
            identity=self._client.identity,
            task_queue=queue,
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            update_queue_rate_limit=update,
        )
        try:
            updated = await self._client.workflow_service.update_task_queue_config(
                request, timeout=limits.FOUND_RPC_TIMEOUT
            )
        except RPCError as error:
            raise RatesUnavailable(error.message) from error
        return _version(updated.config.queue_rate_limit.metadata.update_time)


def _version(changed: Timestamp) -> str:
    return f"{changed.seconds}.{changed.nanos}" if changed.seconds else ""
