"""What the histories of a run hold: children, model calls, failed workflow tasks; of the run and of all below it."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

from tests.task_failures import task_failures

MODEL_CALLS = {"plan", "call_model", "synthesize", "refine", "review", "judge"}

_ENDS = (
    "child_workflow_execution_completed_event_attributes",
    "child_workflow_execution_failed_event_attributes",
    "child_workflow_execution_canceled_event_attributes",
    "child_workflow_execution_terminated_event_attributes",
)
_CLOSED = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
}
_NEVER = float("inf")


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


@dataclass
class GivenUp:
    """The look-up of a lost child's cost: when it began, and the last event that the workflow had seen by its end."""

    began: float
    seen: float = _NEVER


@dataclass
class Record:
    """What the history of one execution holds; `given_up` by the run ids of the children."""

    workflow_id: str
    children: dict[int, Child] = field(default_factory=dict)
    model_calls: dict[int, ModelCall] = field(default_factory=dict)
    given_up: dict[str, GivenUp] = field(default_factory=dict)
    task_failures: list[str] = field(default_factory=list)
    closed_at: float = _NEVER
    until: float = _NEVER
    """When those above ceased to listen: what came later is in no book."""

    def booked(self) -> list[ModelCall]:
        """Returns the calls that the run must know of."""
        return [call for call in self.model_calls.values() if call.done_at is not None and call.done_at <= self.until]


async def tree(client: Client, workflow_id: str, run_id: str, known: Collection[str] = ()) -> "Tree":
    """Returns an execution and all below it, those above first; without what is `known`."""
    found = Tree()
    waiting = [(workflow_id, run_id)]
    while waiting:
        workflow_id, run_id = waiting.pop()
        if run_id in found.records or run_id in known:
            continue
        history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
        record = record_of(history)
        found.histories[run_id], found.records[run_id] = history, record
        waiting += [(child.workflow_id, child.run_id) for child in record.children.values() if child.run_id]
    for record in found.records.values():
        for child in record.children.values():
            if below := found.records.get(child.run_id):
                given_up = record.given_up.get(child.run_id)
                below.until = min(record.until, given_up.began if given_up else below.until)
    return found


@dataclass
class Tree:
    """The histories of an execution and of all below it, and what they hold, by run id."""

    histories: dict[str, WorkflowHistory] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)

    def add(self, other: "Tree") -> None:
        """Takes another one in."""
        self.histories |= other.histories
        self.records |= other.records


def record_of(history: WorkflowHistory) -> Record:
    """Returns the record of one execution."""
    record = Record(history.workflow_id)
    for event in history.events:
        match event.event_type:
            case EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                _note_activity(record, event)
            case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                completed = event.activity_task_completed_event_attributes
                _note_result(record, event, completed.scheduled_event_id, _decoded(completed.result.payloads))
            case _:
                _note_child(record, event)
    _note_looks(record, history.events)
    record.task_failures += task_failures(history.events)
    if history.events[-1].event_type in _CLOSED:
        record.closed_at = _at(history.events[-1])
    return record


def _decoded(payloads: Sequence[Payload]) -> Any:
    return json.loads(payloads[0].data) if payloads and payloads[0].data else None


def _at(event: HistoryEvent) -> float:
    return event.event_time.ToNanoseconds() / 1e9


def _note_activity(record: Record, event: HistoryEvent) -> None:
    scheduled = event.activity_task_scheduled_event_attributes
    if scheduled.activity_type.name in MODEL_CALLS:
        record.model_calls[event.event_id] = ModelCall()


def _note_result(record: Record, event: HistoryEvent, scheduled_id: int, value: Any) -> None:
    if call := record.model_calls.get(scheduled_id):
        usage = value["usage"]
        call.done_at, call.calls = _at(event), usage.get("model_calls", 0)
        call.tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)


def calls_in_a_pause(history: WorkflowHistory) -> Iterator[str]:
    """Returns the model calls that began while a workflow knew of a pause."""
    told: dict[str, Any] = {}
    paused, updates = False, dict[str, str]()
    for event in history.events:
        signal = event.workflow_execution_signaled_event_attributes
        admitted = event.workflow_execution_update_admitted_event_attributes.request
        accepted = event.workflow_execution_update_accepted_event_attributes
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
            inputs = event.workflow_execution_started_event_attributes.input.payloads
            told = (json.loads(inputs[-1].data) or {}).get("instructions") or {}
            paused = told.get("paused", False)
        elif signal.signal_name == "instructions":
            news = _decoded(signal.input.payloads) or {}
            told = max(told, news, key=lambda instructions: instructions.get("number", 0))  # an older one may come late
            paused = told.get("paused", False)
        elif admitted.meta.update_id:
            updates[admitted.meta.update_id] = admitted.input.name
        elif accepted.protocol_instance_id:
            name = accepted.accepted_request.input.name or updates.get(accepted.protocol_instance_id, "")
            paused = {"pause": True, "resume": False}.get(name, paused)
        elif paused and event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name in MODEL_CALLS:
                yield f"{history.workflow_id} called the model in a pause: event {event.event_id}"


def _note_looks(record: Record, events: Sequence[HistoryEvent]) -> None:
    """Notes the children that the run does not hear from any more: an activity looks up in the journal what they cost.

    One that fails books nothing.
    """
    looks: dict[int, GivenUp] = {}
    ended: list[GivenUp] = []
    latest: dict[str, str] = {}
    for event in events:
        started = event.child_workflow_execution_started_event_attributes.workflow_execution
        if started.run_id:
            latest[started.workflow_id] = started.run_id
        scheduled = event.activity_task_scheduled_event_attributes
        completed = event.activity_task_completed_event_attributes
        if scheduled.activity_type.name == "child_consumed":
            ref = _decoded(scheduled.input.payloads)
            looks[event.event_id] = record.given_up[latest[ref["workflow_id"]]] = GivenUp(_at(event))
        elif look := looks.pop(completed.scheduled_event_id, None):
            ended.append(look)
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            for look in ended:
                look.seen = event.workflow_task_completed_event_attributes.started_event_id
            ended.clear()
    for look in looks.values():
        look.began = 0


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
            child.value = _decoded(end.result.payloads)
        elif event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
            child.value = _decoded(end.failure.application_failure_info.details.payloads) or {}
