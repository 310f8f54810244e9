"""Termination of children that a supervisor started before a reset and no longer knows."""

from collections.abc import AsyncIterator, Iterator, Sequence

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.run_contracts import RunRef
from temporal_supervisor.supervision.contract.base import Model

_REASON = "its supervisor was reset to before it was started"


class OrphansInput(Model):
    """The run whose supervisor was reset: the workflow of the activity."""

    run: RunRef


class Orphans:
    """The activity with which a supervisor begins after a reset."""

    @activity.defn
    async def end_orphans(self, reset: OrphansInput) -> int:
        """Terminates the workflows that executions before a reset left. Returns their number.

        Children that the new execution has started under the same ids stay: each is identified by
        its first execution.
        """
        client = activity.client()
        info = activity.info()
        workflow_id = info.workflow_id or ""
        events = await _history(client, workflow_id, info.workflow_run_id or "")
        ended = 0
        for base_run_id, fork in _resets(events):
            before = await _history(client, workflow_id, base_run_id)
            for child in _children_since(before, fork):
                ended += await _terminate(client, child)
        if ended:
            activity.logger.info("%d workflows were terminated: %s", ended, _REASON)
        return ended


async def _history(client: Client, workflow_id: str, run_id: str) -> Sequence[HistoryEvent]:
    """Returns the events of an execution; none if the server has forgotten it."""
    events = client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events()
    try:
        return [event async for event in _relevant_events(events)]
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return []
        raise


async def _relevant_events(events: AsyncIterator[HistoryEvent]) -> AsyncIterator[HistoryEvent]:
    """Yields the events about resets and children."""
    async for event in events:
        if event.HasField("workflow_task_failed_event_attributes") or event.HasField(
            "child_workflow_execution_started_event_attributes"
        ):
            yield event


def _resets(events: Sequence[HistoryEvent]) -> Iterator[tuple[str, int]]:
    """Yields each reset in a history: the run id it left, and the last event that both share."""
    for event in events:
        failed = event.workflow_task_failed_event_attributes
        if failed.base_run_id:
            yield failed.base_run_id, event.event_id


def _children_since(events: Sequence[HistoryEvent], fork: int) -> Iterator[WorkflowExecution]:
    """Yields the children that an execution started after an event."""
    for event in events:
        started = event.child_workflow_execution_started_event_attributes
        if started.initiated_event_id > fork:
            yield started.workflow_execution


async def _terminate(client: Client, child: WorkflowExecution) -> bool:
    """Terminates a child with its descendants.

    Returns False if it has ended, or if another workflow has its id now.
    """
    handle = client.get_workflow_handle(child.workflow_id, first_execution_run_id=child.run_id)
    try:
        await handle.terminate(reason=_REASON)
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION):
            return False
        raise
    return True
