"""Children of a supervisor as the server and the journal know them: for resets, and for those that were lost."""

from collections.abc import AsyncIterator

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.run_contracts import ChildEnd, ChildQuestion, ChildRef, Consumed
from activities.heartbeat import waiting
from activities.model.conversation import ConversationStore, Entry
from activities.model.journalled_call import usage_of
from activities.store.artifacts import ArtifactStore
from supervision import limits
from supervision.contract.result import Problem
from supervision.contract.usage import Usage
from supervision.errors import ErrorKind
from supervision.run.attempt_rules import next_child_id
from supervision.store_keys import calls_prefix


class ChildActivities:
    """Looks children up, with the client and the store of this process; `free` says that model calls cost nothing."""

    def __init__(
        self, client: Client, store: ArtifactStore, conversations: ConversationStore, *, free: bool = False
    ) -> None:
        self._client = client
        self._store = store
        self._conversations = conversations
        self._free = free

    @activity.defn
    async def find_child(self, question: ChildQuestion) -> ChildRef | None:
        """Returns the child that an earlier execution of the caller started; None if it started none there.

        Ids can be guessed: only what the server knows as a child of the caller's own chain of executions counts.
        """
        chains = await self._own_chains(question.workflow_id)
        if question.start >= len(chains):
            return None
        first = chains[question.start]
        key = await self._report_key(question.workflow_id, first)
        return ChildRef(run=question.run, workflow_id=question.workflow_id, first_run_id=first, report_key=key)

    async def _report_key(self, workflow_id: str, run_id: str) -> str:
        """Returns the key that a nested supervisor was given with its second input; empty for a worker agent."""
        async for event in self._events(workflow_id, run_id):
            inputs = event.workflow_execution_started_event_attributes.input.payloads
            nested = (await self._client.data_converter.decode(inputs[1:2]) or [None])[0]
            terms = nested.get("terms") if isinstance(nested, dict) else None
            return str(terms.get("report_key", "")) if isinstance(terms, dict) else ""
        return ""

    @activity.defn
    async def await_child(self, child: ChildRef) -> ChildEnd:
        """Returns how a child ended, once it has: it may be at work for long."""
        handle = self._client.get_workflow_handle(child.workflow_id, run_id=child.first_run_id)
        async with waiting():
            try:
                return ChildEnd(value=await handle.result())
            except WorkflowFailureError as failure:
                cause = failure.cause
                if not isinstance(cause, ApplicationError):  # cancelled without a result, terminated, timed out
                    following = await self._own_chains(next_child_id(child.workflow_id))
                    return ChildEnd(lost=True, given_up=bool(following))
                problem = Problem(type=ErrorKind(cause.type or ""), message=cause.message)
                return ChildEnd(value=cause.details[0] if cause.details else None, problem=problem)

    @activity.defn
    async def child_consumed(self, child: ChildRef) -> Consumed:
        """Returns what a child consumed, with its own children, that ended without saying so."""
        return await self._consumed(child.run.run_id, child.workflow_id, child.first_run_id)

    async def _consumed(self, run_id: str, workflow_id: str, first_run_id: str) -> Consumed:
        consumed, execution = Consumed(), first_run_id
        while execution:
            for key in await self._store.list_keys(calls_prefix(run_id, execution)):
                entry = await self._conversations.entry(key)
                reply = entry.reply
                own = usage_of(reply.model, reply.usage, free=self._free) + entry.spent
                consumed.usage += own + Usage(tool_calls=_tool_calls(entry))
                consumed.turns += 1
            following = ""
            async for event in self._events(workflow_id, execution):
                if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
                    following = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
                elif event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
                    started = event.child_workflow_execution_started_event_attributes.workflow_execution
                    below = await self._consumed(run_id, started.workflow_id, started.run_id)
                    consumed.usage += below.usage
                    consumed.turns += below.turns
            execution = following
        return consumed

    async def _own_chains(self, workflow_id: str) -> list[str]:
        """Returns the first executions of those children under an id that the caller's own chain started, in order."""
        info = activity.info()
        own = await self._describe(info.workflow_id or "", info.workflow_run_id or "")
        if own is None:
            return []
        chains: dict[str, float] = {}
        for run_id in await self._executions(workflow_id):
            found = await self._describe(workflow_id, run_id)
            if found is None or not await self._is_parent(own, found):
                continue
            started, first = found.start_time.ToNanoseconds(), found.first_run_id or run_id
            chains[first] = min(started, chains.get(first, started))
        return sorted(chains, key=lambda first: chains[first])

    async def _executions(self, workflow_id: str) -> list[str]:
        """Returns the run ids under a workflow id; the latest one in any case, as lists of the server lag behind."""
        quoted = workflow_id.replace("\\", "\\\\").replace("'", "\\'")
        runs = [run.run_id async for run in self._client.list_workflows(f"WorkflowId = '{quoted}'")]
        latest = await self._describe(workflow_id, "")
        return list(dict.fromkeys([*runs, *([latest.execution.run_id] if latest else [])]))

    async def _is_parent(self, own: WorkflowExecutionInfo, child: WorkflowExecutionInfo) -> bool:
        parent = child.parent_execution
        if parent.workflow_id != own.execution.workflow_id:
            return False
        described = await self._describe(parent.workflow_id, parent.run_id)
        return described is not None and _chain(described) == _chain(own)

    async def _describe(self, workflow_id: str, run_id: str) -> WorkflowExecutionInfo | None:
        """Returns an execution as the server knows it, the latest one without a run id; None if it knows none."""
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        request = DescribeWorkflowExecutionRequest(namespace=self._client.namespace, execution=execution)
        try:
            described = await self._client.workflow_service.describe_workflow_execution(
                request, timeout=limits.CONNECT_TIMEOUT
            )
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
        return described.workflow_execution_info

    async def _events(self, workflow_id: str, run_id: str) -> AsyncIterator[HistoryEvent]:
        try:
            async for event in self._client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events():
                yield event
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # past its retention: the journal alone counts
                raise


def _chain(execution: WorkflowExecutionInfo) -> str:
    return execution.first_run_id or execution.execution.run_id


def _tool_calls(entry: Entry) -> int:
    return min(len(list(entry.reply.tool_uses())), limits.TOOL_CALLS_PER_TURN)
