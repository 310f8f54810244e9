"""Starting a run, once and only once per id, where Workers serve it."""

import secrets

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from console.command import FAILED, UNREACHABLE, CommandFailed, server_address
from console.hints import hint, worker_hint
from console.run.pollers import ACTIVITIES, WORKFLOWS, pollers
from console.run.run_handle import RUN_TYPE, RunHandle, is_open, state_word
from supervision.base import limits
from supervision.base.queues import MODEL_QUEUE, WORKFLOW_QUEUE
from supervision.base.text import label, slug
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult


async def require_workers(client: Client) -> None:
    """Raises CommandFailed if no Worker serves one of the queues that a run needs; the message says what to do."""
    server, key = server_address(client), "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
    if not await pollers(client, WORKFLOW_QUEUE, WORKFLOWS):
        why = f"no worker serves queue '{WORKFLOW_QUEUE}' at {server}: start one with {worker_hint()} (it needs {key})"
    elif not await pollers(client, MODEL_QUEUE, ACTIVITIES):
        none = f"no worker makes model calls (queue '{MODEL_QUEUE}' at {server})"
        why = f"{none}: set {key} and start one with {worker_hint()}"
    else:
        return
    raise CommandFailed(UNREACHABLE, f"{why}, or pass --queue-anyway")


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
        known = f"is already running (since {other.start_time:%Y-%m-%d %H:%M} UTC): follow it with"
        return f"run '{run.id}' {known} {hint('follow', run.id)}, or choose another --id"
    known = f"exists already ({state_word(other)}): read it with"
    return f"run '{run.id}' {known} {hint('result', run.id)}, or choose another --id"
