"""Workflow tasks that failed: those of our own code, apart from those that the server gave back."""

from collections.abc import Iterable, Iterator

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent

_OF_THE_SERVER = {
    # The run was terminated meanwhile.
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
    # Something came in while the task was closing the run (a signal, a child's end): it is done again with that.
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    # A reset goes on from here.
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
}


def task_failures(events: Iterable[HistoryEvent]) -> Iterator[str]:
    """Yields the causes of the workflow tasks that failed by what the workflow did."""
    for event in events:
        if event.event_type != EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            continue

        failed = event.workflow_task_failed_event_attributes
        if failed.cause not in _OF_THE_SERVER:
            cause = WorkflowTaskFailedCause.Name(failed.cause)
            yield f"{cause}: {failed.failure.message[:300]}"
