"""The start of a run: its id, and its introduction in the Web UI."""

import secrets
import time
from collections.abc import Mapping

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from temporal_supervisor.runtime.telemetry import run_started
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import WORKFLOW_QUEUE
from temporal_supervisor.supervision.base.text import label, slug
from temporal_supervisor.supervision.contract import RunRequest, RunResult
from temporal_supervisor.supervision.contract.team import Team
from temporal_supervisor.supervision.planning.plan_graph import own_plan_problems
from temporal_supervisor.supervision.reuse.earlier import earlier_ids

RUN_TYPE = "SupervisorWorkflow"
_PROBLEMS_SHOWN = 5  # of a plan


async def start_run(
    client: Client,
    request: RunRequest | Mapping[str, object],
    run_id: str | None,
) -> str:
    """Starts a run and returns its id; raises like `Run.start`."""
    request = RunRequest.model_validate(request)
    check_plan(request)
    began_at = time.time_ns()
    handle = await client.start_workflow(
        RUN_TYPE,
        request,
        id=run_id or new_run_id(client, request.goal),
        task_queue=WORKFLOW_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        static_summary=label(request.goal, 200),
        static_details=_details(request),
        result_type=RunResult,
    )
    run_started(handle.id, handle.first_execution_run_id or "", began_at)
    return handle.id


def check_plan(request: RunRequest) -> None:
    """Raises ValueError for a caller's plan that cannot run with any data and team."""
    plan = request.plan
    if plan is None:
        return
    # A finding of an earlier run takes no room.
    most = request.max_subtasks + len(earlier_ids(plan))
    problems = own_plan_problems(plan, most)
    if problems:
        raise ValueError(f"the plan cannot run: {'; '.join(problems[:_PROBLEMS_SHOWN])}")


def new_run_id(client: Client, goal: str) -> str:
    """Returns an unused id, with words of the goal unless the client encrypts.

    Ids are readable for everybody who may list workflows.
    """
    words = "" if client.data_converter.payload_codec else f"{slug(goal)}-"
    return f"supervise-{words}{secrets.token_hex(3)}"


def _details(request: RunRequest) -> str:
    """Returns the Markdown introduction of a run for the Web UI."""
    team = f"Team **{request.team_name}**" if request.team else "The Workers' usual team"
    team += " (inline)" if isinstance(request.team, Team) else ""
    goal = label(request.goal, limits.SUMMARY_BYTES)
    return f"{goal}\n\n{team}, strategy {request.strategy}"
