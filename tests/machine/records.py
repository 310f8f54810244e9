"""What the histories of a run hold: children, model calls, failed workflow tasks; of the run and of all below it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

MODEL_CALLS = {"plan", "call_model", "synthesize", "refine", "review", "judge"}

_HARMLESS = {  # it was terminated meanwhile, or something came in
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
}
_ENDS = (
    "child_workflow_execution_completed_event_attributes",
    "child_workflow_execution_failed_event_attributes",
    "child_workflow_execution_canceled_event_attributes",
    "child_workflow_execution_terminated_event_attributes",
)
_GIVEN_UP = "cost of "
"""What the look-up in the journal is labelled with, of a child that the run does not hear from any more."""


@dataclass
class Child:
    """A child workflow as its parent's history has it; `ended` is the id of the event, 0 while it runs."""

    workflow_id: str
    run_id: str = ""
    ended: int = 0
    value: dict[str, Any] = field(default_factory=dict)


@dataclass
class ModelCall:
    """A model call as history has it; `done_at` is None while it has no result."""

    done_at: float | None = None
    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class GivenUp:
    """The look-up of a child's cost: when it began, and the last event that the workflow had seen by its end."""

    began: float
    seen: int


@dataclass
class Record:
    """What the history of one workflow holds; `given_up` by the ids of the children."""

    children: dict[int, Child] = field(default_factory=dict)
    model_calls: dict[int, ModelCall] = field(default_factory=dict)
    given_up: dict[str, GivenUp] = field(default_factory=dict)
    task_failures: list[str] = field(default_factory=list)
    until: float = float("inf")
    """When those above ceased to listen: what came later is in no book."""

    def booked(self) -> list[ModelCall]:
        """Returns the calls that the run must know of."""
        return [call for call in self.model_calls.values() if call.done_at is not None and call.done_at <= self.until]


async def tree(client: Client, run_id: str) -> dict[str, WorkflowHistory]:
    """Returns the histories of a run and of all below it, by workflow id, those above first."""
    histories: dict[str, WorkflowHistory] = {}
    waiting = [(run_id, "")]
    while waiting:
        workflow_id, execution = waiting.pop()
        history = await client.get_workflow_handle(workflow_id, run_id=execution or None).fetch_history()
        histories[workflow_id] = history
        children = record_of(history.events).children.values()
        waiting += [(child.workflow_id, child.run_id) for child in children if child.run_id]
    return histories


def records_of(histories: dict[str, WorkflowHistory]) -> dict[str, Record]:
    """Returns the records of a run and of all below it, by workflow id."""
    records = {workflow_id: record_of(history.events) for workflow_id, history in histories.items()}
    for record in records.values():
        for child in record.children.values():
            if below := records.get(child.workflow_id):
                given_up = record.given_up.get(child.workflow_id)
                below.until = min(record.until, given_up.began if given_up else below.until)
    return records


def record_of(events: Sequence[HistoryEvent]) -> Record:
    """Returns the record of one workflow."""
    record, seen = Record(), 0
    for event in events:
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                if event.activity_task_scheduled_event_attributes.activity_type.name in MODEL_CALLS:
                    record.model_calls[event.event_id] = ModelCall()
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                completed = event.activity_task_completed_event_attributes
                if call := record.model_calls.get(completed.scheduled_event_id):
                    usage = json.loads(completed.result.payloads[0].data)["usage"]
                    call.done_at, call.calls = _at(event), usage.get("model_calls", 0)
                    call.tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                record.task_failures += _task_failure(event)
            case EventType.EVENT_TYPE_MARKER_RECORDED:
                record.given_up.update(_given_up(event, seen))
            case EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                seen = event.workflow_task_completed_event_attributes.started_event_id
            case _:
                _note_child(record, event)
    return record


def _at(event: HistoryEvent) -> float:
    return event.event_time.ToNanoseconds() / 1e9


def _task_failure(event: HistoryEvent) -> Iterator[str]:
    failed = event.workflow_task_failed_event_attributes
    if failed.cause not in _HARMLESS:
        yield f"{WorkflowTaskFailedCause.Name(failed.cause)}: {failed.failure.message[:300]}"


def _given_up(event: HistoryEvent, seen: int) -> dict[str, GivenUp]:
    label = json.loads(event.user_metadata.summary.data or b'""')
    if not label.startswith(_GIVEN_UP):
        return {}
    began = json.loads(event.marker_recorded_event_attributes.details["data"].payloads[0].data)[
        "original_schedule_time"
    ]
    return {label.removeprefix(_GIVEN_UP): GivenUp(began["seconds"] + began["nanos"] / 1e9, seen)}


def _note_child(record: Record, event: HistoryEvent) -> None:
    if event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
        initiated = event.start_child_workflow_execution_initiated_event_attributes
        record.children[event.event_id] = Child(initiated.workflow_id)
    elif event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
        started = event.child_workflow_execution_started_event_attributes
        record.children[started.initiated_event_id].run_id = started.workflow_execution.run_id
    elif (kind := event.WhichOneof("attributes")) in _ENDS:
        end = getattr(event, kind)
        child = record.children[end.initiated_event_id]
        child.ended = event.event_id
        if event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
            child.value = json.loads(end.result.payloads[0].data)
