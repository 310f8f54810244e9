"""Starting a run, once and only once per id."""

import secrets

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from console.command_errors import FAILED, CommandFailed
from console.run.run_handle import RUN_TYPE, Run, is_open, state_word
from supervision import limits
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from supervision.queues import WORKFLOW_QUEUE
from supervision.text import cut, one_line, slug


def new_run_id(goal: str) -> str:
    """A readable id that is not in use."""
    return f"supervise-{slug(goal)}-{secrets.token_hex(3)}"


async def start(client: Client, request: RunRequest, run_id: str) -> Run:
    """Starts the run; CommandFailed naming the other one when the id is taken."""
    try:
        await client.start_workflow(
            RUN_TYPE,
            request,
            id=run_id,
            task_queue=WORKFLOW_QUEUE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            static_summary=one_line(request.goal, 200),
            static_details=_details(request),
            result_type=RunResult,
        )
    except WorkflowAlreadyStartedError as error:
        raise CommandFailed(FAILED, await _taken(Run(client, run_id))) from error
    return Run(client, run_id)


def _details(request: RunRequest) -> str:
    team = request.team if isinstance(request.team, str) else f"{request.team.name} (inline)"
    return f"{cut(request.goal, limits.SUMMARY_BYTES)}\n\nTeam **{team}**, strategy {request.strategy}"


async def _taken(run: Run) -> str:
    other = await run.describe()
    if is_open(other):
        what = f"run '{run.id}' is already running (since {other.start_time:%Y-%m-%d %H:%M} UTC)"
        return f"{what}: follow it with `python starter.py follow {run.id}`, or choose another --id"
    what = f"run '{run.id}' exists already ({state_word(other)})"
    return f"{what}: read it with `python starter.py result {run.id}`, or choose another --id"
