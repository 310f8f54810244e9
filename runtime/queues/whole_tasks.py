"""Workflows go on with whole workflow tasks alone: what a query brings ahead of its task is refused.

A query that waits for a Worker, one of a run that this process does not have in its cache, comes with all events there
are by then, of a workflow task that nobody has yet. The SDK lets the workflow go on with them, and with the rest of
that task when it comes. A replay has all in one, signals and updates first: commands come in another order, and the
run stands still (`TMPRL1100`). So such a query fails, the workflow leaves the cache, and nothing has happened.
See docs/decisions/0004.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

ASK_AGAIN = "the run has news that it has not taken in yet: ask again"
_QUIET = {"query_workflow", "remove_from_cache"}
_MOST_REFUSALS = 3  # one after the other: a server whose clock stands still must not keep a run from going on


class WholeTasks(WorkflowRunner):
    """Runs workflows as `runner` does, but for what comes ahead of its workflow task."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner
        self._refusals: Counter[str] = Counter()

    def prepare_workflow(self, defn: Any) -> None:
        """Prepares what runs the workflow."""
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        """Tells what runs the workflow."""
        self._runner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that is asked only with whole workflow tasks."""
        instance = self._runner.create_instance(det)
        activate, run_id, known = instance.activate, det.info.run_id, _Progress()

        def whole(act: WorkflowActivation) -> WorkflowActivationCompletion:
            if known.is_ahead(act) and self._refusals[run_id] < _MOST_REFUSALS:
                self._refusals[run_id] += 1
                return _refused(act)
            if known.note(act):
                self._refusals.pop(run_id, None)
            return activate(act)

        instance.activate = whole  # type: ignore[method-assign]
        return instance


class _Progress:
    """How far a workflow has come: the events it knows, and when its last workflow task was started."""

    def __init__(self) -> None:
        self._length = 0
        self._started = 0

    def is_ahead(self, act: WorkflowActivation) -> bool:
        """True if there are more events, but no later task that brings them."""
        return (
            self._length > 0
            and not act.is_replaying
            and act.history_length > self._length
            and act.timestamp.ToNanoseconds() == self._started
            and _moves(act)
        )

    def note(self, act: WorkflowActivation) -> bool:
        """Takes note of a task. Returns True if the workflow goes on with it for the first time."""
        if not _moves(act):
            return False
        self._length, self._started = act.history_length, act.timestamp.ToNanoseconds()
        return not act.is_replaying


def _moves(act: WorkflowActivation) -> bool:
    return any(job.WhichOneof("variant") not in _QUIET for job in act.jobs)


def _refused(act: WorkflowActivation) -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion(run_id=act.run_id)
    completion.failed.failure.message = ASK_AGAIN
    completion.failed.failure.application_failure_info.SetInParent()
    return completion
