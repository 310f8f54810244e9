"""A workflow of somebody else's in the same namespace."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

EVIL = "evil"
"""Its task queue."""


@workflow.defn(name="Forger")
class Forger:
    """A foreign workflow: it schedules an activity of ours, or starts a workflow of ours as its child."""

    @workflow.run
    async def run(self, kind: str, name: str, queue: str, arguments: list[Any]) -> Any:
        """Returns whatever comes back."""
        if kind == "child":
            return await workflow.execute_child_workflow(name, args=arguments, task_queue=queue)
        return await workflow.execute_activity(
            name,
            args=arguments,
            task_queue=queue,
            start_to_close_timeout=timedelta(seconds=30),
            schedule_to_close_timeout=timedelta(seconds=30),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
