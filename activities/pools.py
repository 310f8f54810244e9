"""How busy others are, as the server knows it: the age of a pool's work, the worker agents of other runs."""

from temporalio import activity
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.contracts.run_contracts import PoolQuestion
from supervision import limits

_WORKER_AGENT = "WorkerAgentWorkflow"


class OtherRuns:
    """The runs beside one, seen with the client of this process."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def agents_at_work(self, run_id: str) -> int:
        """Returns how many worker agents of other runs are open; 0 if the server fails, or is slow to say it."""
        own = run_id.replace("\\", "\\\\").replace("'", "\\'")
        query = f"WorkflowType = '{_WORKER_AGENT}' AND ExecutionStatus = 'Running' AND RootWorkflowId != '{own}'"
        try:
            return (await self._client.count_workflows(query, rpc_timeout=limits.LOAD_TIMEOUT)).count
        except RPCError:
            return 0


class PoolActivities:
    """The queues of pools, seen with the client of this process."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn
    async def pool_backlog(self, question: PoolQuestion) -> float:
        """Returns the seconds that the oldest activity in a queue has waited; 0 if none waits or the server fails.

        The server caches its answer for a while (`matching.TaskQueueInfoByBuildIdTTL`, 5 s): it may be that old.
        """
        request = DescribeTaskQueueRequest(
            namespace=self._client.namespace,
            task_queue=TaskQueue(name=question.queue),
            api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
            task_queue_types=[TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY],
            report_stats=True,
        )
        try:
            described = await self._client.workflow_service.describe_task_queue(request)
        except RPCError:
            return 0.0
        ages = [
            info.stats.approximate_backlog_age.ToTimedelta().total_seconds()
            for version in described.versions_info.values()
            for info in version.types_info.values()
        ]
        return max(ages, default=0.0)
