"""Who calls an activity, by the server's own word: nothing in here comes from the activity's input."""

import asyncio
import threading
from dataclasses import dataclass

from cachetools import LRUCache
from temporalio import activity, workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from supervision import limits


@dataclass(frozen=True)
class Caller:
    """A workflow execution. `chain_id` is its first run id: it outlives continue-as-new and resets.

    `parent_chain_id` is None for a workflow without a parent, or whose parent the server no longer knows.
    """

    workflow_id: str
    chain_id: str
    workflow_type: str
    parent_chain_id: str | None


class Callers:
    """Knows the workflows that began in this process, and looks others up at the server, each once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._namespace_id: str | None = None
        self._known: LRUCache[str, Caller] = LRUCache(limits.KNOWN_CALLERS)
        self._lock = threading.Lock()  # workflows begin in threads of their own
        self._chains: LRUCache[str, asyncio.Task[str | None]] = LRUCache(limits.KNOWN_CALLERS)

    async def namespace_id(self) -> str:
        """Returns the id that the server gave to the namespace: unlike its name, no other server's has it."""
        if self._namespace_id is None:
            described = await self._client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=self._client.namespace), timeout=limits.CONNECT_TIMEOUT
            )
            self._namespace_id = described.namespace_info.id
        return self._namespace_id

    def notice(self, info: workflow.Info) -> None:
        """Remembers a workflow that begins in this process, with what the server told the Worker of it."""
        parent_chain_id = None
        if info.parent:
            parent = self._remembered(info.parent.run_id)
            if parent is None:  # it is at work in another process
                return
            parent_chain_id = parent.chain_id
        caller = Caller(info.workflow_id, info.first_execution_run_id, info.workflow_type, parent_chain_id)
        with self._lock:
            self._known[info.run_id] = caller

    async def of(self, info: activity.Info) -> Caller:
        """Returns the workflow that scheduled this activity. Raises a retryable error while the server is away."""
        run_id = info.workflow_run_id or ""
        caller = self._remembered(run_id)
        if caller is None:
            caller = await self._look_up(info.workflow_id or "", run_id)
            with self._lock:
                self._known[run_id] = caller
        return caller

    def _remembered(self, run_id: str) -> Caller | None:
        with self._lock:
            return self._known.get(run_id)

    async def _look_up(self, workflow_id: str, run_id: str) -> Caller:
        described = (await self._describe(workflow_id, run_id)).workflow_execution_info
        parent = described.parent_execution
        return Caller(
            workflow_id=workflow_id,
            chain_id=described.first_run_id or run_id,
            workflow_type=described.type.name,
            parent_chain_id=await self._chain_of(parent) if parent.run_id else None,
        )

    async def _chain_of(self, execution: WorkflowExecution) -> str | None:
        """Returns the first run id of a workflow execution, None if the server no longer knows it."""
        question = self._chains.get(execution.run_id)
        if question is None or (question.done() and (question.cancelled() or question.exception())):
            # One question for all siblings that begin together: a parent of many children is long to describe.
            question = self._chains[execution.run_id] = asyncio.create_task(self._ask_chain(execution))
        return await asyncio.shield(question)  # a cancelled caller must not end the question of the others

    async def _ask_chain(self, execution: WorkflowExecution) -> str | None:
        try:
            described = await self._describe(execution.workflow_id, execution.run_id)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        return described.workflow_execution_info.first_run_id or execution.run_id

    async def _describe(self, workflow_id: str, run_id: str) -> DescribeWorkflowExecutionResponse:
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        return await self._client.workflow_service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(namespace=self._client.namespace, execution=execution),
            timeout=limits.CONNECT_TIMEOUT,
        )
