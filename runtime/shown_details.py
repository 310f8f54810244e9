"""The Markdown that the Web UI shows of a workflow, rendered when it is queried.

The SDK wants it set with every change, which costs a large run more than all its other work, in each replay again.
"""

from typing import Any, Protocol, runtime_checkable

from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.worker import (
    HandleQueryInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)


@runtime_checkable
class HasDetails(Protocol):
    """A workflow that can render itself."""

    def details(self) -> str:
        """Returns Markdown."""
        ...


class ShownDetails(Interceptor):
    """Puts the details of a workflow into the reply to the SDK's own query for its metadata."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        """Returns the part that sees queries."""
        return _Rendering


class _Rendering(WorkflowInboundInterceptor):
    async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002
        """Answers a query; only the metadata are completed."""
        reply = await super().handle_query(input)
        instance = workflow.instance()
        if isinstance(reply, WorkflowMetadata) and isinstance(instance, HasDetails):
            reply.current_details = instance.details()
        return reply
