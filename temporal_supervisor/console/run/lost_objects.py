"""Objects that an open run's histories refer to, but that the store has lost.

This happens when a backup is restored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.runs import Run
from temporal_supervisor.supervision.base.store_keys import is_key, run_prefix

_REFERENCES = ("ref", "head")  # as `activities.attempt_interceptor` has them


@dataclass(frozen=True)
class Loss:
    """The first lost object of a workflow: the event that brought it, and the task to reset to."""

    workflow_id: str
    execution_id: str
    event_id: int
    key: str
    reset_to: int


async def losses_of(
    run: Run,
    store: ArtifactStore,
    places: Sequence[tuple[str, str]],
) -> list[Loss]:
    """Returns the first loss of each of these open workflows, the run's own first.

    A workflow that a reset of its parent starts again is left out: it finds what is left of its own
    work, and pays for the rest. Raises the store's errors.
    """
    stored = set(await store.list_keys(run_prefix(run.id)))
    losses: list[Loss] = []
    begun_anew: list[str] = []
    for workflow_id, execution_id in sorted(places, key=lambda place: place[0].count("/")):
        if any(f"{workflow_id}/".startswith(f"{child}/") for child in begun_anew):
            continue
        handle = run.client.get_workflow_handle(workflow_id, run_id=execution_id)
        history = await handle.fetch_history()
        loss = await _first_loss(run, history.events, stored)
        if loss is None:
            continue
        event_id, key, reset_to = loss
        losses.append(Loss(workflow_id, execution_id, event_id, key, reset_to))
        begun_anew += _children_after(history.events, reset_to)
    return losses


async def _first_loss(
    run: Run,
    events: Sequence[HistoryEvent],
    stored: set[str],
) -> tuple[int, str, int] | None:
    """Returns the first event whose result is lost, its key, and the end of its task."""
    asked_by = {event.event_id: _task_of(event) for event in events}
    for event in events:
        began, payloads = _result_of(event)
        if not payloads:
            continue
        for key in await _references_in(run.client, payloads):
            if key.startswith(run_prefix(run.id)) and key not in stored:
                return event.event_id, key, asked_by[began]
    return None


def _task_of(event: HistoryEvent) -> int:
    """Returns the end of the workflow task that issued an event's command; 0 without one."""
    if event.HasField("activity_task_scheduled_event_attributes"):
        return event.activity_task_scheduled_event_attributes.workflow_task_completed_event_id
    child = event.start_child_workflow_execution_initiated_event_attributes
    return child.workflow_task_completed_event_id


def _result_of(event: HistoryEvent) -> tuple[int, Sequence[Payload]]:
    """Returns the number of the event that began an activity or child, and its result.

    The result of a failed child is its error's details. Other events have none.
    """
    if event.HasField("activity_task_completed_event_attributes"):
        activity = event.activity_task_completed_event_attributes
        return activity.scheduled_event_id, activity.result.payloads
    if event.HasField("child_workflow_execution_completed_event_attributes"):
        child = event.child_workflow_execution_completed_event_attributes
        return child.initiated_event_id, child.result.payloads
    if event.HasField("child_workflow_execution_failed_event_attributes"):
        failed = event.child_workflow_execution_failed_event_attributes
        failure = failed.failure.cause if failed.failure.HasField("cause") else failed.failure
        return failed.initiated_event_id, failure.application_failure_info.details.payloads
    return 0, ()


def _children_after(events: Sequence[HistoryEvent], event_id: int) -> list[str]:
    """Returns the ids of the children that began after an event."""
    ids = []
    for event in events:
        begun = event.start_child_workflow_execution_initiated_event_attributes
        if event.event_id > event_id and begun.workflow_id:
            ids.append(begun.workflow_id)
    return ids


async def _references_in(client: Client, payloads: Sequence[Payload]) -> list[str]:
    """Returns the references in payloads."""
    values = await client.data_converter.decode(payloads)
    return [key for value in values for key in _references(value)]


def _references(value: Any, name: str = "") -> Iterator[str]:
    """Yields the references in JSON, recognised by the names of their fields."""
    if isinstance(value, dict):
        for field, item in value.items():
            yield from _references(item, field)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item, name)
    elif isinstance(value, str):
        is_reference = name.endswith("_ref") or name in _REFERENCES
        if is_reference and is_key(value):
            yield value
