"""Look-ups of a supervisor: a pool's backlog, an earlier child that is in the way, what a lost child consumed."""

from temporalio import activity
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.run_contracts import ChildRef, Consumed, PoolQuestion
from activities.model.conversation import ConversationStore
from activities.model.journalled_call import usage_of
from activities.model.port import ModelEndpoint
from activities.store.artifacts import ArtifactStore
from supervision.base import limits
from supervision.base.store_keys import calls_of, calls_prefix
from supervision.contract.usage import Usage


class Lookups:
    """Look-ups with the client, the store and the model endpoint of this process."""

    def __init__(
        self, client: Client, store: ArtifactStore, conversations: ConversationStore, endpoint: ModelEndpoint
    ) -> None:
        self._client = client
        self._store = store
        self._conversations = conversations
        self._endpoint = endpoint

    @activity.defn
    async def end_earlier_child(self, child: ChildRef) -> bool:
        """Terminates the child that an execution before a reset left under an id. Returns False if it is a stranger.

        What it had asked the model stands in the journal, so the child that follows pays for nothing again.
        """
        handle = self._client.get_workflow_handle(child.workflow_id)
        try:
            found = await handle.describe(rpc_timeout=limits.CONNECT_TIMEOUT)
            if found.parent_id != activity.info().workflow_id:
                return False
            await self._client.get_workflow_handle(child.workflow_id, run_id=found.run_id).terminate(
                "its supervisor was reset and starts it again", rpc_timeout=limits.CONNECT_TIMEOUT
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it has ended meanwhile
                raise
        return True

    @activity.defn
    async def child_consumed(self, child: ChildRef) -> Consumed:
        """Returns what a child has consumed, with its own children, in all of its executions."""
        run = child.run
        own = calls_of(run.run_id, run.first_run_id, child.workflow_id)
        consumed = Consumed()
        for key in await self._store.list_keys(calls_prefix(run.run_id, run.first_run_id)):
            if key.startswith(own):
                entry = await self._conversations.entry(key)
                reply = entry.reply
                consumed.usage += usage_of(self._endpoint, reply.model, reply.usage) + entry.spent
                consumed.usage += Usage(tool_calls=min(len(reply.tool_uses()), limits.TOOL_CALLS_PER_TURN))
                consumed.turns += 1
        return consumed

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
