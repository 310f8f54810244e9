"""Activities of a run that fail again and again, as the server sees them: no Worker needs to answer."""

import asyncio
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from console import console_limits
from supervision.errors import ErrorKind
from supervision.text import one_line


@dataclass(frozen=True)
class RetryingCall:
    """An activity that was tried several times and goes on; `kind` and `failure` are those of its last attempt."""

    workflow_id: str
    activity: str
    attempt: int
    since: datetime | None
    kind: str
    failure: str

    def sentence(self) -> str:
        """Returns one line: which activity, since when, why."""
        since = f" since {self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        return f"{self.activity} of '{self.workflow_id}' is tried again{since}, attempt {self.attempt}: {self.failure}"

    def as_json(self) -> dict[str, Any]:
        """Returns its fields."""
        return {**asdict(self), "since": self.since.isoformat() if self.since else None}


async def retrying_calls(client: Client, run_id: str) -> list[RetryingCall]:
    """Returns the activities of a run, its worker agents and nested supervisors that were tried several times.

    Looks at no more than `console_limits.DESCRIBED_CHILDREN` children.
    """
    found: list[RetryingCall] = []
    level, left = [WorkflowExecution(workflow_id=run_id)], 1 + console_limits.DESCRIBED_CHILDREN
    while level:
        level, left = level[:left], left - min(left, len(level))
        described = [info for info in await _described(client, level) if info is not None]
        calls = [_calls(client, info) for info in described]
        found += [call for some in await asyncio.gather(*calls) for call in some]
        level = [
            WorkflowExecution(workflow_id=child.workflow_id, run_id=child.run_id)
            for info in described
            for child in info.pending_children
        ]
    return sorted(found, key=lambda call: (-call.attempt, call.workflow_id))


async def _described(
    client: Client, executions: list[WorkflowExecution]
) -> list[DescribeWorkflowExecutionResponse | None]:
    asking = asyncio.Semaphore(console_limits.DESCRIBED_AT_ONCE)

    async def describe(execution: WorkflowExecution) -> DescribeWorkflowExecutionResponse | None:
        request = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
        async with asking:
            try:
                return await client.workflow_service.describe_workflow_execution(
                    request, timeout=console_limits.RPC_TIMEOUT
                )
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:  # a child that is not started yet
                    return None
                raise

    return await asyncio.gather(*map(describe, executions))


async def _calls(client: Client, described: DescribeWorkflowExecutionResponse) -> list[RetryingCall]:
    """Returns the retried activities of one workflow."""
    pending = [info for info in described.pending_activities if info.attempt >= console_limits.SHOWN_ATTEMPT]
    if not pending:
        return []
    execution = described.workflow_execution_info.execution
    begun = await _begun(client, execution)
    return [_call(execution.workflow_id, info, begun.get(info.activity_id)) for info in pending]


def _call(workflow_id: str, info: PendingActivityInfo, since: datetime | None) -> RetryingCall:
    failure = _innermost(info.last_failure)
    kind = failure.application_failure_info.type or ("Timeout" if failure.HasField("timeout_failure_info") else "")
    listed = ErrorKind(kind) is not ErrorKind.UNEXPECTED
    text = f"{kind}: {failure.message}" if kind else failure.message
    return RetryingCall(
        workflow_id=workflow_id,
        activity=info.activity_type.name,
        attempt=info.attempt,
        since=since,
        kind=kind if listed else ErrorKind.UNEXPECTED,
        failure=one_line(text, console_limits.SHOWN_FAILURE_BYTES) or "no failure is recorded",
    )


def _innermost(failure: Failure) -> Failure:
    while not failure.HasField("application_failure_info") and failure.HasField("cause"):
        failure = failure.cause
    return failure


async def _begun(client: Client, execution: WorkflowExecution) -> dict[str, datetime]:
    """Returns when a workflow's latest activities were first scheduled, by id: the server shows the last attempt's."""
    history = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace, execution=execution, maximum_page_size=console_limits.LATEST_EVENTS
        ),
        timeout=console_limits.RPC_TIMEOUT,
    )
    return {
        event.activity_task_scheduled_event_attributes.activity_id: event.event_time.ToDatetime(tzinfo=UTC)
        for event in history.history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    }
