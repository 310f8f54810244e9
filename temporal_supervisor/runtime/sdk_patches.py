"""All uses of parts of temporalio that are private or experimental are in this module.

Each patch asks for the version that it was written for and for the names that it uses. With another
version, or without them, it says so once in the log and leaves the SDK as it is. `UpdatesLast`
decides in which order histories have their commands: without it nothing may run workflows.
`docs/upstream/` describes the faults behind the patches.
"""

import asyncio
import logging
import sys
from collections import OrderedDict
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
_CACHE_MARGIN = 1000  # workflows in the SDK's cache that are being evicted, at most: a few at a time
_QUIET = {"query_workflow", "remove_from_cache"}


def _is_for_this_sdk(owner: object, *names: str) -> bool:
    """True if this SDK has the right version, and the names that a patch uses."""
    return version == _WRITTEN_FOR and all(hasattr(owner, name) for name in names)


def _fits(patch: str, owner: object, *names: str) -> bool:
    """True if a patch is for this SDK; else a line in the log says that it is left out."""
    if _is_for_this_sdk(owner, *names):
        return True
    log.warning("temporalio %s is used without the patch '%s': it is for %s", version, patch, _WRITTEN_FOR)
    return False


# --- Slots for workflow tasks, by an interface that the SDK calls experimental --------------------


class TaskSlots(CustomSlotSupplier):
    """Gives out so many slots for tasks of workflows in the cache, and so many for others: new, or to be replayed.

    The ten seconds of a workflow task begin when a Worker takes it. After a restart all runs come at once, each with
    its whole history: side by side in one interpreter each replay takes as long as all together.
    """

    def __init__(self, cached: int, others: int) -> None:
        self._free = {True: asyncio.Semaphore(cached), False: asyncio.Semaphore(others)}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Returns a permit as soon as there may be one more task of that kind."""
        self._loop = asyncio.get_running_loop()
        await self._free[ctx.is_sticky].acquire()
        return _Permit(ctx.is_sticky)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Returns None: nothing starts workflows in the Worker that runs them."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Does nothing: a permit counts from its reservation on."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Takes a permit back; the SDK calls this in a thread of its own."""
        if isinstance(ctx.permit, _Permit) and self._loop is not None:
            self._loop.call_soon_threadsafe(self._free[ctx.permit.is_sticky].release)


class _Permit(SlotPermit):
    def __init__(self, is_sticky: bool) -> None:
        self.is_sticky = is_sticky


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
        """Prepares the runner of the workflow."""
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        """Passes the types on."""
        self._runner.set_worker_level_failure_exception_types(types)


_ENDS = ("complete_workflow_execution", "fail_workflow_execution", "cancel_workflow_execution")


class UpdatesLast(_Around):
    """Has workflows take updates after all else of an activation, in Workers and in replays alike.

    Else an update that comes with the event of the task before it is taken first, and commands come
    in another order than in later replays (`TMPRL1100`): docs/upstream/4. Histories of updated runs
    are valid only with this order. So another SDK is refused: it would stop each open run that was
    ever updated.
    """

    def __init__(self, runner: WorkflowRunner) -> None:
        """Raises ValueError if the SDK is another one than this was written for."""
        super().__init__(runner)
        if not _is_for_this_sdk(WorkflowInstance, "activate"):
            raise ValueError(
                f"temporalio {version} is installed, but workflows run with {_WRITTEN_FOR} only: open runs that were "
                f"updated would not replay. Install temporalio=={_WRITTEN_FOR}"
            )

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that takes updates last."""
        instance = self._runner.create_instance(det)
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


# --- Workflows get whole workflow tasks only, and leave the cache before it is full ---------------


class WholeTasks(_Around):
    """Runs workflows as `runner` does, but holds back what a query brings ahead of its workflow task.

    It keeps so many workflows `cached`, those used last. The SDK's own cache has more places, for when it is full the
    SDK loses workflow tasks: docs/upstream/3.

    A query that waits for a Worker comes with events of a workflow task that was not given out yet. The SDK hands them
    to the workflow at once, a replay with the rest of that task, so that commands come in another order (`TMPRL1100`).
    Here the workflow answers as its last task left it, and leaves the cache before the next one: docs/decisions/0004.
    """

    def __init__(self, runner: WorkflowRunner, cached: int) -> None:
        super().__init__(runner)
        self._cached = cached
        self._used: OrderedDict[str, None] = OrderedDict()  # the ids of cached ones, the last used at the end
        self._worker: Worker | None = None

    @property
    def cache_size(self) -> int:
        """The size of the SDK's own cache."""
        return self._cached + (_CACHE_MARGIN if version == _WRITTEN_FOR else 0)

    def serve(self, worker: Worker) -> None:
        """Names the Worker that workflows are run for. Without it nothing is held back."""
        if _fits("whole tasks", worker, "_bridge_worker"):
            self._worker = worker

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that gets whole workflow tasks only."""
        instance = self._runner.create_instance(det)
        if self._worker is None:
            return instance
        from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

        go_on, events, task, held = instance.activate, 0, 0, False

        def activate(act: "WorkflowActivation") -> "WorkflowActivationCompletion":
            nonlocal events, task, held
            kinds = {job.WhichOneof("variant") for job in act.jobs}
            self._note_use(act.run_id, leaves="remove_from_cache" in kinds)
            completion = WorkflowActivationCompletion(run_id=act.run_id)
            if kinds <= _QUIET:
                completion = go_on(act)
                if held and "query_workflow" in kinds:
                    self._evict(act.run_id)
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

    def _note_use(self, run_id: str, *, leaves: bool) -> None:
        self._used.pop(run_id, None)
        if leaves:
            return
        self._used[run_id] = None
        if len(self._used) > self._cached:
            self._evict(self._used.popitem(last=False)[0])  # a workflow at work leaves at the end of its task

    def _evict(self, run_id: str) -> None:
        if self._worker is not None and self._worker._bridge_worker is not None:
            self._worker._bridge_worker.request_workflow_eviction(run_id)
