"""What leans on parts of temporalio that are private or experimental: this module, and no other.

Each patch asks for the version that it was written for and for the names that it uses. With another version, or without
them, it says so once in the log and leaves the SDK as it is. `docs/upstream/` describes the faults behind them.
"""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from temporalio.converter import DataConverter
from temporalio.service import __version__ as version
from temporalio.worker import (
    CustomSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    Worker,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)

if TYPE_CHECKING:
    from temporalio.bridge.proto.workflow_activation import WorkflowActivation
    from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

log = logging.getLogger(__name__)

_WRITTEN_FOR = "1.35.0"
_LOST = 12.0  # seconds: the server gives a task out again after ten, so a result after that is refused
_LOOK = 3.0  # seconds between two looks for lost ones, while a slot is wanted
_QUIET = {"query_workflow", "remove_from_cache"}


def _fits(patch: str, owner: object, *names: str) -> bool:
    """True if a patch is for this SDK."""
    lacking = [name for name in names if not hasattr(owner, name)]
    if version == _WRITTEN_FOR and not lacking:
        return True
    why = f"it lacks {', '.join(lacking)}" if lacking else f"the patch is for {_WRITTEN_FOR}"
    log.warning("temporalio %s is used without the patch '%s': %s", version, patch, why)
    return False


# --- Slots for workflow tasks, by an interface that the SDK calls experimental --------------------


class TaskSlots(CustomSlotSupplier):
    """Gives out so many slots for tasks of workflows in the cache, and so many for others: new, or to be replayed.

    The ten seconds of a workflow task begin when a Worker takes it. After a restart all runs come at once, each with
    its whole history: side by side in one interpreter each replay takes as long as all together.
    """

    def __init__(self, cached: int, others: int) -> None:
        self._free = {True: asyncio.Semaphore(cached), False: asyncio.Semaphore(others)}
        self._used: set[_Permit] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Returns a permit as soon as there may be one more task of that kind."""
        self._loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._free[ctx.is_sticky].acquire(), _LOOK)
                return _Permit(ctx.is_sticky)
            # The SDK loses a task now and then, and its slot with it: docs/upstream/3.
            for permit in [permit for permit in tuple(self._used) if time.monotonic() - permit.since > _LOST]:
                self._free_again(permit)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Returns None: nothing starts workflows in the Worker that runs them."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Notes when the task came."""
        if isinstance(ctx.permit, _Permit):
            ctx.permit.since = time.monotonic()
            self._used.add(ctx.permit)

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Takes a permit back; the SDK calls this in a thread of its own."""
        if isinstance(ctx.permit, _Permit) and self._loop is not None:
            self._loop.call_soon_threadsafe(self._free_again, ctx.permit)

    def _free_again(self, permit: "_Permit") -> None:
        self._used.discard(permit)
        if not permit.is_back:
            permit.is_back = True
            self._free[permit.is_sticky].release()


class _Permit(SlotPermit):
    def __init__(self, is_sticky: bool) -> None:
        self.is_sticky = is_sticky
        self.is_back = False
        self.since = 0.0


# --- Payloads that nothing encodes are not visited ------------------------------------------------


def leave_plain_payloads() -> None:
    """Has the Workers of this process visit payloads only where a codec or external storage is set.

    For each activation of a workflow the SDK goes through all payloads six times, to decode and encode them and to
    keep them elsewhere. Without a codec and external storage that changes nothing: a fifth of what a replay costs.
    """
    bridge, visits = sys.modules.get("temporalio.bridge.worker"), ("decode_activation", "encode_completion")
    if not _fits("plain payloads", bridge, *visits):
        return
    for name in visits:
        visit = getattr(bridge, name)
        if not hasattr(visit, "visits_all"):
            setattr(bridge, name, _where_needed(visit))


def _where_needed(visit: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def visited(message: Any, converter: DataConverter, **options: Any) -> Any:
        if converter.payload_codec is None and converter.external_storage is None:
            from temporalio.converter._extstore import StorageOperationMetrics

            return StorageOperationMetrics()
        return await visit(message, converter, **options)

    visited.visits_all = visit  # type: ignore[attr-defined]
    return visited


# --- Updates come after all else that a workflow task brings ---------------------------------------


class _Around(WorkflowRunner):
    """Runs workflows as another runner does, but for what a patch changes."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner

    def prepare_workflow(self, defn: Any) -> None:
        """Prepares what runs the workflow."""
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        """Passes the types on."""
        self._runner.set_worker_level_failure_exception_types(types)


_ENDS = ("complete_workflow_execution", "fail_workflow_execution", "cancel_workflow_execution")


class UpdatesLast(_Around):
    """Has workflows take updates after all else of an activation, in Workers and in replays alike.

    A Worker that replays a workflow to bring it an update may get the event of the task before in the same activation,
    and would take the update first; later replays have the two one after the other, so that commands come in another
    order (`TMPRL1100`). See docs/upstream/4.
    """

    def __init__(self, runner: WorkflowRunner) -> None:
        super().__init__(runner)
        self._fits = _fits("updates last", WorkflowInstance, "activate")

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that takes updates last."""
        instance = self._runner.create_instance(det)
        if not self._fits:
            return instance
        go_on = instance.activate

        def activate(act: "WorkflowActivation") -> "WorkflowActivationCompletion":
            updates = [job for job in act.jobs if job.HasField("do_update")]
            if not updates or len(updates) == len(act.jobs):
                return go_on(act)
            first = go_on(_with_jobs(act, [job for job in act.jobs if not job.HasField("do_update")]))
            last = first if first.HasField("failed") else go_on(_with_jobs(act, updates))
            if last.HasField("failed"):
                return last
            commands = [*first.successful.commands, *last.successful.commands]
            commands.sort(key=lambda command: command.WhichOneof("variant") in _ENDS)
            del first.successful.commands[:]
            first.successful.commands.extend(commands)
            return first

        instance.activate = activate  # type: ignore[method-assign]
        return instance


def _with_jobs(act: "WorkflowActivation", jobs: Sequence[Any]) -> "WorkflowActivation":
    part = type(act)()
    part.CopyFrom(act)
    del part.jobs[:]
    part.jobs.extend(jobs)
    return part


# --- Workflows get whole workflow tasks only ------------------------------------------------------


class WholeTasks(_Around):
    """Runs workflows as `runner` does, but holds back what a query brings ahead of its workflow task.

    A query that waits for a Worker comes with all events there are by then, of a workflow task that was not given out
    yet. The SDK hands them to the workflow at once, and with the rest of that task when it comes; a replay has all in
    one, signals and updates first, so that commands come in another order (`TMPRL1100`). Here the workflow answers as
    its last task left it, and leaves the cache before the next one. See docs/decisions/0004.
    """

    def __init__(self, runner: WorkflowRunner) -> None:
        super().__init__(runner)
        self._worker: Worker | None = None

    def serve(self, worker: Worker) -> None:
        """Names the Worker that workflows are run for. Without it nothing is held back."""
        if _fits("whole tasks", worker, "_bridge_worker"):
            self._worker = worker

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that gets whole workflow tasks only."""
        instance = self._runner.create_instance(det)
        if (worker := self._worker) is None:
            return instance
        from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

        go_on, events, task, held = instance.activate, 0, 0, False

        def activate(act: "WorkflowActivation") -> "WorkflowActivationCompletion":
            nonlocal events, task, held
            kinds = {job.WhichOneof("variant") for job in act.jobs}
            completion = WorkflowActivationCompletion(run_id=act.run_id)
            if kinds <= _QUIET:
                completion = go_on(act)
                if held and "query_workflow" in kinds and worker._bridge_worker is not None:
                    worker._bridge_worker.request_workflow_eviction(act.run_id)
                return completion
            if held:  # it is to be evicted: without what is held back it must not continue
                completion.failed.failure.message = "the workflow continues from its history"
                completion.failed.failure.application_failure_info.SetInParent()
                return completion
            started = act.timestamp.ToNanoseconds()
            # More events, but no later task that brings them.
            if not act.is_replaying and started == task and act.history_length > events > 0:
                held = True
                completion.successful.SetInParent()
                return completion
            events, task = act.history_length, started
            return go_on(act)

        instance.activate = activate  # type: ignore[method-assign]
        return instance
