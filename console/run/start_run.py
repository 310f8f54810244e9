"""Starting a run, once and only once per id, where Workers serve it."""

import secrets
from datetime import UTC, datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from console import console_limits
from console.access import server_address
from console.command import FAILED, UNREACHABLE, CommandFailed
from console.run.run_handle import RUN_TYPE, RunHandle, is_open, state_word
from console.terminal import command
from supervision import limits
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from supervision.queues import MODEL_QUEUE, WORKFLOW_QUEUE
from supervision.text import label, slug

WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> dict[str, datetime]:
    """Returns when each Worker that serves a queue polled it last, by identity; a dead one is listed for a minute."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind),
        timeout=console_limits.RPC_TIMEOUT,
    )
    oldest = datetime.now(UTC) - console_limits.POLLER_FRESH
    polls = sorted((p.identity, p.last_access_time.ToDatetime(tzinfo=UTC)) for p in described.pollers)
    return {identity: polled for identity, polled in polls if polled >= oldest}


async def require_workers(client: Client) -> None:
    """Raises CommandFailed if no Worker serves one of the queues that a run needs; the message says what to do."""
    server = server_address(client)
    if not await pollers(client, WORKFLOW_QUEUE, WORKFLOWS):
        raise CommandFailed(
            UNREACHABLE,
            f"no worker serves queue '{WORKFLOW_QUEUE}' at {server}: start one with `python worker_main.py` "
            "(it needs ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL), or pass --queue-anyway",
        )
    if not await pollers(client, MODEL_QUEUE, ACTIVITIES):
        raise CommandFailed(
            UNREACHABLE,
            f"no worker makes model calls (queue '{MODEL_QUEUE}' at {server}): set ANTHROPIC_API_KEY or "
            "ANTHROPIC_BASE_URL and start one with `python worker_main.py`, or pass --queue-anyway",
        )


def new_run_id(goal: str) -> str:
    """Returns a readable id that is not in use."""
    return f"supervise-{slug(goal)}-{secrets.token_hex(3)}"


async def start(client: Client, request: RunRequest, run_id: str) -> RunHandle:
    """Starts the run. Raises CommandFailed naming the other run if the id is taken."""
    try:
        await client.start_workflow(
            RUN_TYPE,
            request,
            id=run_id,
            task_queue=WORKFLOW_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            static_summary=label(request.goal, 200),
            static_details=_details(request),
            result_type=RunResult,
        )
    except WorkflowAlreadyStartedError as error:
        raise CommandFailed(FAILED, await _taken(RunHandle(client, run_id))) from error
    return RunHandle(client, run_id)


def _details(request: RunRequest) -> str:
    team = request.team if isinstance(request.team, str) else f"{request.team.name} (inline)"
    return f"{label(request.goal, limits.SUMMARY_BYTES)}\n\nTeam **{team}**, strategy {request.strategy}"


async def _taken(run: RunHandle) -> str:
    """Returns a sentence on the run that has the id, and on what to do."""
    other = await run.describe()
    if is_open(other):
        return (
            f"run '{run.id}' is already running (since {other.start_time:%Y-%m-%d %H:%M} UTC): "
            f"follow it with `{command('follow', run.id)}`, or choose another --id"
        )
    return (
        f"run '{run.id}' exists already ({state_word(other)}): "
        f"read it with `{command('result', run.id)}`, or choose another --id"
    )
