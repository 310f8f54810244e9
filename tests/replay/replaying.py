"""Replaying histories with today's workflow code."""

from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from runtime import workers
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

OURS = (SupervisorWorkflow, WorkerAgentWorkflow)


def replayer(*workflows: type, strict: bool = True) -> Replayer:
    """Returns what replays histories of those workflows, by default of the project's; see `workflow_runner`."""
    return workers.replayer(workflows or OURS, strict=strict)


def recorded(path: Path) -> WorkflowHistory:
    """Returns a recorded history with the id of its workflow: the ids of children begin with it."""
    history = WorkflowHistory.from_json("", path.read_text(encoding="utf-8"))
    started = history.events[0].workflow_execution_started_event_attributes
    return WorkflowHistory(started.workflow_id, history.events)


async def refused(histories: AsyncIterator[WorkflowHistory]) -> AsyncIterator[tuple[WorkflowHistory, Exception]]:
    """Gives those histories that do not replay, and why."""
    async with replayer(strict=False).workflow_replay_iterator(histories) as results:
        async for result in results:
            if result.replay_failure is not None:
                yield result.history, result.replay_failure


def outline(history: WorkflowHistory) -> str:
    """Returns a line for each event, for logs: what was refused once may never come again."""
    return "\n".join(_line(event) for event in history.events)


def _line(event: HistoryEvent) -> str:
    attributes = getattr(event, str(event.WhichOneof("attributes")))
    told = [f"{field.name}={value}" for field, value in attributes.ListFields() if field.name.endswith("_event_id")]
    for name in ("activity_type", "workflow_type"):
        told += [getattr(attributes, name).name] if hasattr(attributes, name) else []
    for name in ("signal_name", "timer_id", "protocol_instance_id", "cause"):
        told += [f"{name}={getattr(attributes, name)}"] if hasattr(attributes, name) else []
    if event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
        told += [payload.data.decode()[:160] for payload in attributes.details["data"].payloads]
    kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
    return f"{event.event_id} {event.event_time.ToJsonString()} {kind} {' '.join(told)}"
