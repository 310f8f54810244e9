"""Runs of the team `relay`, and looking at them the way people do: history, details, status, the error."""

import json
from typing import Any

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ApplicationError

from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from supervision.contract.status import Status
from tests.activity.model.http_fixture import Json
from tests.scripted_model import Reply, ScriptedModel, as_json, text, tools
from workflows.supervisor import SupervisorWorkflow

Handle = WorkflowHandle[SupervisorWorkflow, RunResult]

FOUND = text("found it\n\nConfidence: 0.8\nLimitations: none")
GIVES_UP = tools(("none", {}))
"""A turn that asks for a tool: the end of an attempt that has one turn only."""


async def start(client: Client, run_id: str, **fields: Any) -> Handle:
    """A run without review."""
    request = RunRequest(**{"goal": "find things out", "team": "relay", "max_reviews": 0, **fields})
    return await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")


async def failure(handle: Handle) -> tuple[ApplicationError, RunResult]:
    """The error that a run ended with, and the partial result in it."""
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    error = caught.value.cause
    assert isinstance(error, ApplicationError)
    return error, RunResult.model_validate(error.details[0])


async def status(handle: Handle) -> Status:
    """Where a run stands."""
    return await handle.query(SupervisorWorkflow.status)


async def waits_for_provider(handle: Handle) -> bool:
    """Whether a run shows that flag."""
    return (await status(handle)).flags.waiting_provider


async def closed(handle: Handle) -> bool:
    """Whether a run has ended."""
    return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING


async def details(handle: Handle) -> str:
    """The Markdown that the Web UI shows of a run."""
    metadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return str(metadata.current_details)


async def events(handle: Handle) -> list[str]:
    """The types of a run's events."""
    page = await handle.query(SupervisorWorkflow.trace)
    return [event.type for event in page.events]


async def labels(client: Client, workflow_id: str, kind: str) -> list[str]:
    """The labels that the Web UI shows of a workflow's activities, timers or children, in the order they began."""
    field = {
        "activity": "activity_task_scheduled_event_attributes",
        "timer": "timer_started_event_attributes",
        "child": "start_child_workflow_execution_initiated_event_attributes",
    }[kind]
    history = client.get_workflow_handle(workflow_id).fetch_history_events()
    return [_label(event) async for event in history if event.HasField(field)]  # type: ignore[arg-type]


def _label(event: HistoryEvent) -> str:
    return str(json.loads(event.user_metadata.summary.data or b'""'))


async def search_attribute(handle: Handle, name: str) -> str | None:
    """A Keyword that the server lists of a run."""
    return (await handle.describe()).typed_search_attributes.get(SearchAttributeKey.for_keyword(name))


def prompt(model: ScriptedModel, run_id: str, step: str) -> str:
    """What the model was told in the last call of that step."""
    return next(c.step.prompt for c in reversed(model.of(run_id)) if c.step.call == f"{run_id}/{step}")


def revision(*subtasks: Json) -> Reply:
    """What a plan gets on top, as a planner writes it."""
    full = [
        {
            "id": item["id"],
            "description": item.get("description", f"Find out about part {item['id']}"),
            "role": item.get("role", "lone"),
            "depends_on": item.get("after", []),
            "replaces": item.get("replaces", []),
        }
        for item in subtasks
    ]
    return as_json({"subtasks": full, "new_roles": []})
