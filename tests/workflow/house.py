"""Runs of the team `house`: starting them, scripting their reviews, reading what became of them."""

from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, Script, ScriptedModel, Step, answer, as_json, script
from workflows.supervisor import SupervisorWorkflow

Handle = WorkflowHandle[SupervisorWorkflow, RunResult]
Turns = dict[str, Callable[[Step], Reply]]


async def start(client: Client, run_id: str, **fields: Any) -> Handle:
    """A run without review."""
    request = RunRequest(**{"goal": "Count the pears of the garden", "team": "house", "max_reviews": 0, **fields})
    return await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")


async def failure(handle: Handle) -> ApplicationError:
    """The error that a run fails with."""
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


def item(id: str, role: str = "porter", **more: Any) -> dict[str, Any]:
    """A subtask of a plan."""
    return {"id": id, "description": f"Find out about part {id}", "role": role, **more}


def subtasks(*items: dict[str, Any], **more: Any) -> Reply:
    """A plan of those subtasks."""
    return as_json({"subtasks": list(items), **more})


def reviewed(shape: Reply, *reviews: Reply, turns: Turns | None = None, judge: Reply | None = None) -> Script:
    """A run whose reviews are answered one after the other, the last one again and again."""
    usual, said = script(shape, turns, answer()), list(reviews)

    def reply(step: Step) -> Reply:
        if step.kind == "review":
            return said.pop(0) if len(said) > 1 else said[0]
        return judge if step.kind == "judge" and judge else usual(step)

    return reply


def verdicts(conflicts: list[dict[str, Any]] | None = None, **feedback: str) -> Reply:
    """A review that finds fault with those subtasks."""
    listed = [{"subtask_id": id, "ok": False, "feedback": words} for id, words in feedback.items()]
    return as_json({"verdicts": listed, "conflicts": conflicts or []})


async def started_children(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """The ids of the child workflows that a workflow started, from its history."""
    history = await handle.fetch_history()
    return [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in history.events
        if event.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]


def prompt(model: ScriptedModel, run_id: str, step: str) -> str:
    """The last message of one call of a run."""
    return next(call.step.prompt for call in model.of(run_id) if call.step.call == f"{run_id}/{step}")
