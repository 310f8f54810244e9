"""Starting a run, waiting for its result and following it, from any program with a Temporal client."""

import asyncio
import atexit
import secrets
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowQueryRejectedError
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.service import RPCError, RPCStatusCode

from runtime.connection import connect as _connect
from runtime.settings import load_settings
from runtime.telemetry import run_started
from supervision.base import limits
from supervision.base.queues import WORKFLOW_QUEUE
from supervision.base.text import label, slug
from supervision.contract import RunRequest, RunResult, Status, TraceEvent, TracePage

_RUN_TYPE = "SupervisorWorkflow"
_POLL = timedelta(seconds=1)
# Threads of the SDK let go of finished calls; in the interpreter's tear-down they aborted 14 of 90 processes.
_let_go = partial(time.sleep, 0.05)


class RunFailed(Exception):
    """A run that ended without a usable answer: `type` is the error's, `result` the part that was done, if any."""

    def __init__(self, type_: str, message: str, result: RunResult | None = None) -> None:
        super().__init__(f"{type_}: {message}")
        self.type = type_
        self.result = result


async def connect(address: str | None = None, namespace: str | None = None) -> Client:
    """Returns a client, from Temporal's own configuration unless an argument says otherwise.

    That is `TEMPORAL_*`, then profiles, then a server that `temporal-supervisor serve` started on this machine. Any
    other client does as well if its data converter is the pydantic one. With SUPERVISOR_KEYS_FILE it encrypts. Raises
    runtime.connection.ConnectionFailed.
    """
    atexit.unregister(_let_go)
    atexit.register(_let_go)
    return await _connect(address=address, namespace=namespace, keys=load_settings().keys)


def new_run_id(client: Client, goal: str) -> str:
    """Returns an id that is not in use, with words of the goal unless the client encrypts: ids are readable."""
    words = "" if client.data_converter.payload_codec else f"{slug(goal)}-"
    return f"supervise-{words}{secrets.token_hex(3)}"


async def start(client: Client, request: RunRequest, run_id: str | None = None) -> str:
    """Starts a run and returns its id. Raises temporalio's WorkflowAlreadyStartedError if there is a run of that id."""
    team = request.team if isinstance(request.team, str) else f"{request.team.name} (inline)"
    began_at = time.time_ns()
    handle = await client.start_workflow(
        _RUN_TYPE,
        request,
        id=run_id or new_run_id(client, request.goal),
        task_queue=WORKFLOW_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        static_summary=label(request.goal, 200),
        static_details=f"{label(request.goal, limits.SUMMARY_BYTES)}\n\nTeam **{team}**, strategy {request.strategy}",
        result_type=RunResult,
    )
    run_started(handle.id, handle.first_execution_run_id or "", began_at)
    return handle.id


async def wait(client: Client, run_id: str) -> RunResult:
    """Returns the result of a run once it has ended. Raises RunFailed if it failed or was cancelled."""
    handle = client.get_workflow_handle(run_id, result_type=RunResult)
    try:
        result: RunResult = await handle.result()
    except WorkflowFailureError as error:
        cause = error.cause
        if isinstance(cause, ApplicationError):
            partial = RunResult.model_validate(cause.details[0]) if cause.details else None
            raise RunFailed(cause.type or "Failed", cause.message, partial) from error
        kind = "Cancelled" if isinstance(cause, CancelledError) else type(cause).__name__
        raise RunFailed(kind, str(cause), await _partial(client, run_id)) from error
    return result


async def run(client: Client, request: RunRequest, run_id: str | None = None) -> RunResult:
    """Starts a run and returns its result. Raises RunFailed, and as `start`."""
    return await wait(client, await start(client, request, run_id))


async def follow(client: Client, run_id: str) -> AsyncIterator[Status | TraceEvent]:
    """Yields the events of a run as they happen, and its status after each group of them, until it has ended.

    Of a run that has much going on the oldest events may be left out: `temporal-supervisor trace` has them all. While
    no Worker or server answers it waits.
    """
    handle = client.get_workflow_handle(run_id)
    cursor, known = 0, -1
    while True:
        described = None
        try:
            described = await handle.describe()
            if described.history_length != known:
                page = await handle.query("trace", cursor, result_type=TracePage)
                status = await handle.query("status", result_type=Status)
                for event in page.events:
                    yield event
                yield status
                cursor, known = page.next_cursor, described.history_length
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise
        if described and described.status is not WorkflowExecutionStatus.RUNNING and described.history_length == known:
            return
        await asyncio.sleep(_POLL.total_seconds())


async def _partial(client: Client, run_id: str) -> RunResult | None:
    """Returns what a cancelled run has; None if no Worker answers."""
    try:
        found: RunResult = await client.get_workflow_handle(run_id).query("result", result_type=RunResult)
    except (RPCError, WorkflowQueryRejectedError):
        return None
    return found
