"""Workflows go on with whole workflow tasks alone: what a query brings ahead of its task is held back.

A query that waits for a Worker comes with all events there are by then, of a workflow task that nobody has yet, unless
the Worker has the workflow in its cache. The SDK lets the workflow go on with them, and with the rest of that task
when it comes. A replay has all in one, signals and updates first: commands come in another order, and the run stands
still (`TMPRL1100`). So the workflow answers as its last task left it, and leaves the cache before the next one.
See docs/decisions/0004.
"""

from collections.abc import Callable, Sequence
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import Worker, WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from runtime.queues.task_slots import TaskSlots

_Activate = Callable[[WorkflowActivation], WorkflowActivationCompletion]

_QUERY = "query_workflow"
_DIRECT = "legacy_query"
"""The SDK's id of a query that comes without a workflow task."""
_QUIET = {_QUERY, "remove_from_cache"}


class WholeTasks(WorkflowRunner):
    """Runs workflows as `runner` does, but for what comes ahead of its workflow task.

    It tells `slots` of replays.
    """

    def __init__(self, runner: WorkflowRunner, slots: TaskSlots | None = None) -> None:
        self._runner = runner
        self._slots = slots
        self._worker: Worker | None = None

    def serve(self, worker: Worker) -> None:
        """Names the Worker that workflows are run for."""
        self._worker = worker

    def prepare_workflow(self, defn: Any) -> None:
        """Prepares what runs the workflow."""
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        """Tells what runs the workflow."""
        self._runner.set_worker_level_failure_exception_types(types)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that goes on with whole workflow tasks alone."""
        instance = self._runner.create_instance(det)
        activate = _Gate(instance.activate, self._evict).activate
        if self._slots is not None:
            activate = _ReplayReport(activate, det.info.workflow_type, self._slots).activate
        instance.activate = activate  # type: ignore[method-assign]
        return instance

    def _evict(self, run_id: str) -> None:
        if self._worker is not None and self._worker._bridge_worker is not None:
            self._worker._bridge_worker.request_workflow_eviction(run_id)


class _Gate:
    """Before one workflow: it knows how many events that has seen, and when its last workflow task was started.

    That may be another one than it saw: the task after the one that began a local activity brings nothing in a replay,
    as the result comes with the one before. What then comes first is doubtful, until no query comes right after it.
    """

    def __init__(self, activate: _Activate, evict: Callable[[str], None]) -> None:
        self._activate = activate
        self._evict = evict
        self._events = 0
        self._task_started = 0
        self._local_result = False
        self._is_doubtful = False
        self._holds_back = False

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Passes on what belongs to a workflow task of its own, and queries."""
        kinds = {job.WhichOneof("variant") for job in act.jobs}
        if not kinds <= _QUIET:
            if self._holds_back:  # it was to be evicted: without what is held back it must not go on
                return _failed(act)
            if self._is_ahead(act):
                self._holds_back = True
                return _nothing(act)
            self._is_doubtful = self._local_result and not act.is_replaying
            self._local_result = act.is_replaying and any(job.resolve_activity.is_local for job in act.jobs)
            self._events, self._task_started = act.history_length, act.timestamp.ToNanoseconds()
        completion = self._activate(act)
        if self._is_doubtful and any(job.query_workflow.query_id == _DIRECT for job in act.jobs):
            self._holds_back = True
        if self._holds_back and _QUERY in kinds:
            self._evict(act.run_id)
        return completion

    def _is_ahead(self, act: WorkflowActivation) -> bool:
        """True if there are more events, but no later task that brings them: clocks of servers do not stand still."""
        same_task = act.timestamp.ToNanoseconds() == self._task_started
        return not act.is_replaying and same_task and act.history_length > self._events > 0


class _ReplayReport:
    """Before one workflow: tells the slots when it begins to be replayed, and when it does something new."""

    def __init__(self, activate: _Activate, workflow: str, slots: TaskSlots) -> None:
        self._activate = activate
        self._workflow = workflow
        self._slots = slots
        self._replays: bool | None = None

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Passes on whatever comes."""
        if act.is_replaying and self._replays is None:
            self._slots.replay_begins(self._workflow)
        elif not act.is_replaying and self._replays is not False:
            self._slots.goes_on(self._workflow)
        self._replays = act.is_replaying
        return self._activate(act)


def _nothing(act: WorkflowActivation) -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion(run_id=act.run_id)
    completion.successful.SetInParent()
    return completion


def _failed(act: WorkflowActivation) -> WorkflowActivationCompletion:
    """Fails the workflow task: the server gives it out again, and the workflow leaves the cache."""
    completion = WorkflowActivationCompletion(run_id=act.run_id)
    completion.failed.failure.message = "the workflow goes on from its history"
    completion.failed.failure.application_failure_info.SetInParent()
    return completion
