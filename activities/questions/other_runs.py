"""The load from other runs, by the server: a planner may plan fewer subtasks then."""

from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError

_PATIENCE = timedelta(seconds=2)  # a plan is made without it, too
_QUERY = (
    "WorkflowType = 'WorkerAgentWorkflow' AND ExecutionStatus = 'Running'"
    " AND RootWorkflowId != '{}'"
)


class OtherRuns:
    """The other runs of the namespace, seen with the client of this process."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def agents_at_work(self, run_id: str) -> int:
        """Returns the number of worker agents of other runs; 0 if the server fails or is slow."""
        own = run_id.replace("\\", "\\\\").replace("'", "\\'")
        query = _QUERY.format(own)
        try:
            found = await self._client.count_workflows(query, rpc_timeout=_PATIENCE)
        except RPCError:
            return 0
        return found.count
