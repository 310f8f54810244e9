"""Comparing what the model server was asked with what history and the store hold."""

import json
from datetime import UTC
from pathlib import Path
from urllib.parse import quote

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from tests.scripted_model import Call

_TICK = 0.02
MODEL_ACTIVITIES = ("plan", "call_model", "synthesize")


async def answered_at(client: Client, run_id: str, workflow_ids: list[str], artifacts: Path) -> dict[str, float]:
    """When each call's answer was durable: the earlier of its completion in history and its object in the store."""
    found: dict[str, float] = {}
    for workflow_id in workflow_ids:
        history = await client.get_workflow_handle(workflow_id).fetch_history()
        run = history.events[0].workflow_execution_started_event_attributes.original_execution_run_id
        calls: dict[int, str] = {}
        for event in history.events:
            scheduled = event.activity_task_scheduled_event_attributes
            if (
                event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
                and scheduled.activity_type.name in MODEL_ACTIVITIES
            ):
                call = (
                    f"{workflow_id}/{_step(scheduled.activity_type.name, json.loads(scheduled.input.payloads[0].data))}"
                )
                calls[event.event_id] = call
                stored = artifacts / quote(run_id, safe="") / run / scheduled.activity_id
                if stored.exists():
                    found[call] = stored.stat().st_mtime
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                completed = calls.get(event.activity_task_completed_event_attributes.scheduled_event_id)
                if completed:
                    at = event.event_time.ToDatetime(tzinfo=UTC).timestamp()
                    found[completed] = min(found.get(completed, at), at)
    return found


def _step(activity: str, request: dict[str, object]) -> str:
    if activity == "plan":
        return f"plan.{request['revision']}.{request['attempt']}"
    return str(request["step"]) if activity == "call_model" else f"synthesis.{request['number']}"


def repeated(calls: list[Call], durable: dict[str, float]) -> list[str]:
    """The calls that arrived after their answer was durable: there must be none.

    A file's time is taken from the kernel's coarse clock, which lags by up to a tick.
    """
    return [call.step.call for call in calls if call.at > durable.get(call.step.call, float("inf")) + _TICK]
