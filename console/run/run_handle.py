"""A run as the command line sees it: queries that never hang, and the server's own view of it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import FailureError
from temporalio.service import RPCError, RPCStatusCode

from console.command_errors import FAILED, CommandFailed
from supervision import limits
from supervision.contract.plan import Plan
from supervision.contract.result import RunResult
from supervision.contract.status import Status, TracePage
from supervision.contract.updates import UpdateReply

RUN_TYPE = "SupervisorWorkflow"
NO_WORKER = "no worker answers; the run is safe and goes on when one is back"

_PHASE = SearchAttributeKey.for_keyword("SupervisorPhase")
_TEAM = SearchAttributeKey.for_keyword("SupervisorTeam")
_USD = SearchAttributeKey.for_float("SupervisorUsd")
_Value = TypeVar("_Value")


class NoAnswer(Exception):
    """A query found nobody to answer it; the message says why, as far as the server knows."""


class Run:
    """One run by its id. Methods raise CommandFailed when there is no such run, NoAnswer when no worker answers."""

    def __init__(self, client: Client, run_id: str) -> None:
        self.client = client
        self.id = run_id
        self.handle: WorkflowHandle[object, RunResult] = client.get_workflow_handle(run_id, result_type=RunResult)

    async def status(self, cursor: int = 0) -> Status:
        """Where the run stands; subtasks from `cursor` on."""
        return await self._query("status", cursor, Status)

    async def plan(self) -> Plan:
        """The plan, empty while it is being made."""
        return await self._query("plan", None, Plan)

    async def result(self) -> RunResult:
        """The result so far."""
        return await self._query("result", None, RunResult)

    async def trace(self, cursor: int = 0, workflow_id: str | None = None) -> TracePage:
        """Events after `cursor`, of the run or of one of its worker agents."""
        return await self._query("trace", cursor, TracePage, workflow_id)

    async def update(self, name: str, argument: BaseModel) -> UpdateReply:
        """Changes the run; CommandFailed with its words when it refuses."""
        async with self._told(self.id):
            try:
                async with asyncio.timeout(limits.CLI_UPDATE_WAIT.total_seconds()):
                    reply: UpdateReply = await self.handle.execute_update(name, argument, result_type=UpdateReply)
                    return reply
            except WorkflowUpdateFailedError as error:
                why = error.cause.message if isinstance(error.cause, FailureError) else str(error.cause)
                raise CommandFailed(FAILED, f"run '{self.id}' refuses: {why}") from error
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
                raise NoAnswer(NO_WORKER) from error

    async def describe(self, workflow_id: str | None = None) -> WorkflowExecutionDescription:
        """What the server knows of the run, or of one of its worker agents."""
        handle = self.client.get_workflow_handle(workflow_id or self.id)
        async with self._told(workflow_id or self.id):
            try:  # the client's own retries would go on for longer than a person waits
                async with asyncio.timeout(limits.CLI_RPC_TIMEOUT.total_seconds()):
                    return await handle.describe(rpc_timeout=limits.CLI_RPC_TIMEOUT)
            except TimeoutError as error:
                raise RPCError("no answer in time", RPCStatusCode.UNAVAILABLE, b"") from error

    async def require(self) -> WorkflowExecutionDescription:
        """As `describe`, and CommandFailed when the id is not that of a run."""
        described = await self.describe()
        if described.workflow_type != RUN_TYPE:
            raise CommandFailed(FAILED, f"'{self.id}' is a {described.workflow_type}, not a run: name the run's id")
        return described

    async def _query(
        self, name: str, argument: int | None, kind: type[_Value], workflow_id: str | None = None
    ) -> _Value:
        handle = self.client.get_workflow_handle(workflow_id or self.id)
        arguments = [] if argument is None else [argument]
        async with self._told(workflow_id or self.id):
            try:
                async with asyncio.timeout(limits.CLI_RPC_TIMEOUT.total_seconds()):
                    answer: _Value = await handle.query(
                        name, args=arguments, result_type=kind, rpc_timeout=limits.CLI_RPC_TIMEOUT
                    )
                    return answer
            except (TimeoutError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
                raise NoAnswer(str(error) or NO_WORKER) from error
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    raise
                raise NoAnswer(error.message) from error

    @asynccontextmanager
    async def _told(self, workflow_id: str) -> AsyncIterator[None]:
        try:
            yield
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise CommandFailed(FAILED, unknown(self.client, workflow_id)) from error
            raise


def unknown(client: Client, run_id: str) -> str:
    """That there is no such run, and how to find the others."""
    return f"there is no run '{run_id}' in namespace '{client.namespace}': `python starter.py list` shows the runs"


def is_open(execution: WorkflowExecution) -> bool:
    """Whether the run goes on."""
    return execution.status is WorkflowExecutionStatus.RUNNING


def state_word(execution: WorkflowExecution) -> str:
    """The run's state in Temporal, in lower case; `cancelled` spelled as everywhere in this project."""
    name = execution.status.name.lower().replace("_", " ") if execution.status else "unknown"
    return "cancelled" if name == "canceled" else name


async def facts(execution: WorkflowExecution) -> tuple[str, str, float | None]:
    """(phase, team, cost so far) as the server keeps them: search attributes, else the memo; "" when unknown."""
    attributes = execution.typed_search_attributes
    phase, team = attributes.get(_PHASE), attributes.get(_TEAM)
    if not phase or not team:
        memo = await readable_memo(execution)
        phase, team = phase or memo.get("phase"), team or memo.get("team")
    return str(phase or ""), str(team or ""), attributes.get(_USD)


async def readable_memo(execution: WorkflowExecution) -> Mapping[str, Any]:
    """The memo of a run; "?" for what can't be read: whoever starts a run may put anything into it."""
    try:
        return await execution.memo()
    except Exception:  # converters raise whatever they like
        return {"phase": "?", "team": "?"}


def stuck(described: WorkflowExecutionDescription) -> str | None:
    """What to say when the run's workflow code keeps failing; None when it does not."""
    pending = described.raw_description.pending_workflow_task
    if pending.attempt <= 1:
        return None
    return (
        f"its workflow code failed {pending.attempt - 1} times in a row: the worker's log says why; "
        "the run goes on when workers with mended code are started"
    )
