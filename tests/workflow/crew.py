"""Runs of the team `crew`: starting them, scripting their plans, reading what became of them."""

from collections.abc import Callable
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from tests.scripted_model import OTHERS, Reply, ScriptedModel, Step, answer, as_json, text
from workflows.supervisor import SupervisorWorkflow

Handle = WorkflowHandle[SupervisorWorkflow, RunResult]
Turns = dict[str, Callable[[Step], Reply]]


async def start(client: Client, run_id: str, **fields: Any) -> Handle:
    """A run without review."""
    request = RunRequest(**{"goal": "Weigh the pears of the garden", "team": "crew", "max_reviews": 0, **fields})
    return await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")


async def failure(handle: Handle) -> ApplicationError:
    """The error that a run fails with."""
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


def item(id: str, role: str = "hand", **more: Any) -> dict[str, Any]:
    """A subtask of a plan."""
    return {"id": id, "description": f"Find out about part {id}", "role": role, **more}


def subtasks(*items: dict[str, Any], **more: Any) -> Reply:
    """A plan of those subtasks."""
    return as_json({"subtasks": list(items), "new_roles": [], **more})


def plans(*replies: Reply, turns: Turns | None = None, answer_reply: Reply | None = None) -> Callable[[Step], Reply]:
    """A script whose plan calls are answered one after the other, the last one again and again."""
    said = list(replies)

    def reply(step: Step) -> Reply:
        if step.kind == "plan":
            return said.pop(0) if len(said) > 1 else said[0]
        if step.kind in OTHERS:
            return OTHERS[step.kind](step)
        if step.kind == "synthesis":
            return answer_reply or answer()
        play = (turns or {}).get(step.subtask_id or "")
        return play(step) if play else text(f"finding of {step.subtask_id}\n\nConfidence: 0.8")

    return reply


async def details(handle: Handle) -> str:
    """The Markdown that the Web UI shows."""
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details


async def started_children(handle: Handle) -> list[str]:
    """The ids of the child workflows that a run started, from its history."""
    history = await handle.fetch_history()
    return [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in history.events
        if event.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]


async def queues_of(client: Client, workflow_id: str) -> list[str]:
    """The task queues of a workflow's activities, in order."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    return [
        event.activity_task_scheduled_event_attributes.task_queue.name
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


def system(model: ScriptedModel, run_id: str, step: str) -> str:
    """The system prompt of one call of a run."""
    call = next(call for call in model.of(run_id) if call.step.call == f"{run_id}/{step}")
    told = call.step.body["system"]
    return told if isinstance(told, str) else "\n".join(block["text"] for block in told)


def prompt(model: ScriptedModel, run_id: str, step: str) -> str:
    """The last message of one call of a run."""
    return next(call.step.prompt for call in model.of(run_id) if call.step.call == f"{run_id}/{step}")
