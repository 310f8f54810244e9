"""Runs in the server's lists, found by any name that people use, and their histories."""

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    EXAMPLE_GOAL,
    FAILED,
    CommandFailed,
    hint,
)
from temporal_supervisor.console.base.terminal import counted
from temporal_supervisor.messages import RPC_TIMEOUT
from temporal_supervisor.runs import Run
from temporal_supervisor.starting import RUN_TYPE
from temporal_supervisor.supervision.run.attempt_rules import is_child_id

_STORE_EVENTS = 30  # the first activity that names the run's store is among them
_PHASE = SearchAttributeKey.for_keyword("SupervisorPhase")
_TEAM = SearchAttributeKey.for_keyword("SupervisorTeam")
WAITING = SearchAttributeKey.for_keyword("SupervisorWaiting")
_USD = SearchAttributeKey.for_float("SupervisorUsd")
STATUS = SearchAttributeKey.for_keyword("SupervisorStatus")


async def recorded_goal(run: Run) -> str:
    """Returns the goal in the run's input; empty if it can't be read.

    Any client may have sent it.
    """
    return goal_in(await recorded_request(run))


def goal_in(request: Mapping[str, Any]) -> str:
    """Returns the goal of a recorded request; empty without one.

    Any client may have sent it.
    """
    goal = request.get("goal")
    return goal if isinstance(goal, str) else ""


async def recorded_request(run: Run) -> Mapping[str, Any]:
    """Returns the request as its caller sent it; empty if it can't be read."""
    async for event in run.handle.fetch_history_events(page_size=1):
        sent = event.workflow_execution_started_event_attributes.input.payloads
        return await first_object(run.client, sent)
    return {}


async def recorded_store(run: Run) -> str | None:
    """Returns the id of the store in the run's first activities; None before these."""
    async for event in run.handle.fetch_history_events(page_size=_STORE_EVENTS):
        payloads = event.activity_task_scheduled_event_attributes.input.payloads
        named = (await first_object(run.client, payloads)).get("run")
        if isinstance(named, dict) and named.get("store_id"):
            return str(named["store_id"])
        if event.event_id >= _STORE_EVENTS:
            break
    return None


async def last_beat(run: Run, activity: PendingActivityInfo) -> Mapping[str, Any]:
    """Returns the details of an activity's last heartbeat; empty if unreadable."""
    return await first_object(run.client, activity.heartbeat_details.payloads)


async def first_object(client: Client, payloads: Sequence[Payload]) -> Mapping[str, Any]:
    """Returns the JSON object in the first payload; empty if there is none."""
    try:
        values = await client.data_converter.decode(payloads)
    except Exception:  # converters raise whatever they like
        return {}
    return values[0] if values and isinstance(values[0], dict) else {}


def query_text(text: str) -> str:
    """Returns a text quoted for a query of workflows."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


async def listed_facts(execution: WorkflowExecution) -> tuple[str, str, float | None]:
    """Returns phase, team and cost so far from search attributes or memo; "" if unknown."""
    attributes = execution.typed_search_attributes
    phase = attributes.get(_PHASE)
    team = attributes.get(_TEAM)
    if not phase or not team:
        memo = await execution.memo()
        phase = phase or memo.get("phase")
        team = team or memo.get("team")
    return str(phase or ""), str(team or ""), attributes.get(_USD)


def stuck_sentence(described: WorkflowExecutionDescription) -> str | None:
    """Returns a sentence if a workflow's code keeps failing, else None."""
    failed = described.raw_description.pending_workflow_task.attempt - 1
    if failed <= 0:
        return None
    return f"its workflow code failed {counted(failed, 'time')} in a row"


# One page of the server's list, for the newest run and the beginning of an id.
_SEARCHED_RUNS = 1000
_GENERATED = "supervise-"
_SHOWN = 5


def short_id(run_id: str) -> str:
    """Returns the part of an id that `find_run` needs: the last word of a generated id."""
    is_made = run_id.startswith(_GENERATED) and "/" not in run_id  # that is in nested runs' ids
    return run_id.rpartition("-")[2] if is_made else run_id


def no_runs(namespace: str) -> str:
    """Returns the message for a namespace without runs."""
    return f"there is no run in namespace '{namespace}': start one with {hint('run', EXAMPLE_GOAL)}"


async def find_run(client: Client, given: str | None) -> str:
    """Returns the id of the run that `given` means, by default the newest one.

    An id without a match is returned unchanged, because the artifact store may still have it.
    Raises CommandFailed.
    """
    if given is None:
        newest = await list_roots(client, 1)
        if not newest:
            raise CommandFailed(FAILED, no_runs(client.namespace))
        return newest[0].id

    try:
        await client.get_workflow_handle(given).describe(rpc_timeout=RPC_TIMEOUT)
        return given
    except RPCError as error:
        if error.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            raise

    ids = [execution.id for execution in await list_roots(client)] if given.strip() else []
    matches = [run_id for run_id in ids if run_id.startswith(given) or short_id(run_id) == given]
    if len(matches) > 1:
        shown = ", ".join(matches[:_SHOWN])
        raise CommandFailed(BAD_INPUT, f"'{given}' is the beginning of several runs: {shown}")
    return matches[0] if matches else given


async def list_roots(
    client: Client,
    limit: int | None = None,
    state: str | None = None,
    begins: str = "",
) -> list[WorkflowExecution]:
    """Returns at most `limit` runs without nested ones, newest first.

    The server sorts by end. With `begins` only runs whose ids begin so are listed.
    """
    query = f"WorkflowType = '{RUN_TYPE}'"
    if state:
        query += f" AND ExecutionStatus = '{state}'"
    if begins:
        query += f" AND WorkflowId STARTS_WITH {query_text(begins)}"

    most = max(limit or 0, _SEARCHED_RUNS)
    listed = client.list_workflows(query, limit=most)
    roots = [run async for run in listed if not is_child_id(run.id, run.parent_id)]
    newest: dict[str, WorkflowExecution] = {}
    for run in sorted(roots, key=lambda run: run.start_time, reverse=True):
        newest.setdefault(run.id, run)  # a reset leaves older executions of the same id
    return list(newest.values())[:limit]


async def list_tree(
    client: Client,
    run_id: str,
    state: str | None = None,
) -> list[WorkflowExecution]:
    """Returns the executions of a run, its worker agents and its nested runs.

    A workflow of the user's that started the run is not among them.
    """
    children = query_text(f"{run_id}/")
    query = f"(WorkflowId = {query_text(run_id)} OR WorkflowId STARTS_WITH {children})"
    if state:
        query += f" AND ExecutionStatus = '{state}'"
    own: list[WorkflowExecution] = []
    below: list[WorkflowExecution] = []
    async for each in client.list_workflows(query, rpc_timeout=RPC_TIMEOUT):
        if is_child_id(each.id, each.parent_id):
            below.append(each)
        elif each.id == run_id and each.workflow_type == RUN_TYPE:
            own.append(each)
    tops = {run_id, *(each.root_id for each in own)}
    return [*own, *(each for each in below if each.root_id in tops)]
