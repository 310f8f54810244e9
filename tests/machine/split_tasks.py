"""Workflow tasks that the SDK splits in two beside a query: such a history does not replay, whatever the workflow does.

A query that has to wait for a Worker brings events with it that no workflow task has brought yet. The SDK lets the
workflow see them at once, and what comes with the task, like an update, after them. A replay has all in one: updates
and signals first. See docs/decisions/0004.
"""

from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.worker import UnsandboxedWorkflowRunner, WorkflowInstance, WorkflowInstanceDetails

_seen: dict[str, set[int]] = {}
"""The lengths of history with which workflows went on, by run id."""


class NotingRunner(UnsandboxedWorkflowRunner):
    """Runs workflows as in production, and notes how far the history was whenever one goes on."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that notes."""
        instance, lengths = super().create_instance(det), _seen.setdefault(det.info.run_id, set())
        activate = instance.activate

        def noting(act: Any) -> Any:
            if not act.is_replaying and any(job.WhichOneof("variant") not in _QUIET for job in act.jobs):
                lengths.add(act.history_length)
            return activate(act)

        instance.activate = noting  # type: ignore[method-assign]
        return instance


_QUIET = {"query_workflow", "remove_from_cache"}


def was_split(run_id: str, history: WorkflowHistory) -> bool:
    """True if the workflow went on at an event that is not the beginning of a workflow task."""
    begun = EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    lengths = _seen.get(run_id, set())
    return any(event.event_id in lengths and event.event_type != begun for event in history.events)
