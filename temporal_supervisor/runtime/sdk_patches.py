"""All uses of private or experimental parts of temporalio.

Each patch checks the SDK's version and the names that it uses. If they differ, it logs that once
and leaves the SDK as it is. `UpdatesLast` determines the order of commands in histories: without it
nothing may run workflows. `docs/upstream/` describes the faults behind the patches.
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
# Workflows in the SDK's cache that are being evicted, at most: a few at a time.
_CACHE_MARGIN = 1000
_QUIET = {"query_workflow", "remove_from_cache"}


def _is_for_this_sdk(owner: object, *names: str) -> bool:
    """True if this SDK has the right version and the names that a patch uses."""
    return version == _WRITTEN_FOR and all(hasattr(owner, name) for name in names)


def _fits(patch: str, owner: object, *names: str) -> bool:
    """True if a patch is for this SDK; otherwise logs that it is left out."""
    if _is_for_this_sdk(owner, *names):
        return True
    message = "temporalio %s is used without the patch '%s': it is for %s"
    log.warning(message, version, patch, _WRITTEN_FOR)
    return False


# --- Slots for workflow tasks, by an interface that the SDK calls experimental --------------------


class TaskSlots(CustomSlotSupplier):
    """Limits concurrent workflow tasks: `cached` for workflows in the cache, `others` for the rest.

    The rest are new workflows and replays. The ten seconds of a workflow task begin when a Worker
    takes it. After a restart all runs come at once, each with its whole history, and each of
    several replays in one interpreter takes as long as all together.
    """

    def __init__(self, cached: int, others: int) -> None:
        self._free = {True: asyncio.Semaphore(cached), False: asyncio.Semaphore(others)}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Waits for a free slot of that kind and returns its permit."""
        self._loop = asyncio.get_running_loop()
        await self._free[ctx.is_sticky].acquire()
        return _Permit(ctx.is_sticky)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Returns None: nothing starts workflows in the Worker that runs them."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Does nothing: a permit counts from its reservation on."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Takes a permit back; the SDK calls this in its own thread."""
        if isinstance(ctx.permit, _Permit) and self._loop is not None:
            self._loop.call_soon_threadsafe(self._free[ctx.permit.is_sticky].release)


class _Permit(SlotPermit):
    def __init__(self, is_sticky: bool) -> None:
        self.is_sticky = is_sticky


# --- Payloads that nothing encodes are not visited ------------------------------------------------


def leave_plain_payloads() -> None:
    """Makes Workers skip visits to payloads unless a codec or external storage is set.

    For each activation of a workflow the SDK visits all payloads six times, to decode, encode and
    store them. Without codec and external storage that has no effect, and costs a fifth of a
    replay.
    """
    bridge = sys.modules.get("temporalio.bridge.worker")
    visits = ("decode_activation", "encode_completion")
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


# --- Updates come after all else that a workflow task brings --------------------------------------


class _Around(WorkflowRunner):
    """Runs workflows like another runner, except for a patch's changes."""

    def __init__(self, runner: WorkflowRunner) -> None:
        self._runner = runner

    def prepare_workflow(self, defn: Any) -> None:
        """Prepares the runner of the workflow."""
        self._runner.prepare_workflow(defn)

    def set_worker_level_failure_exception_types(
        self,
        types: Sequence[type[BaseException]],
    ) -> None:
        """Passes the types on."""
        self._runner.set_worker_level_failure_exception_types(types)


_ENDS = ("complete_workflow_execution", "fail_workflow_execution", "cancel_workflow_execution")


class UpdatesLast(_Around):
    """Applies updates after everything else in an activation, in Workers and in replays.

    Otherwise an update that comes with an event of the previous task is applied first, and commands
    come in another order than in later replays (`TMPRL1100`): docs/upstream/4. Histories of updated
    runs are valid only with this order. So another SDK version is rejected: it would stop each open
    run that was ever updated.
    """

    def __init__(self, runner: WorkflowRunner) -> None:
        """Raises ValueError if the SDK has another version than this was written for."""
        super().__init__(runner)
        if not _is_for_this_sdk(WorkflowInstance, "activate"):
            raise ValueError(
                f"temporalio {version} is installed, but workflows run with {_WRITTEN_FOR} only: "
                "open runs that were updated would not replay. "
                f"Install temporalio=={_WRITTEN_FOR}"
            )

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that applies updates last."""
        instance = self._runner.create_instance(det)
        go_on = instance.activate

        def activate(act: "WorkflowActivation") -> "WorkflowActivationCompletion":
            updates = [job for job in act.jobs if job.HasField("do_update")]
            others = [job for job in act.jobs if not job.HasField("do_update")]
            if not updates or not others:
                return go_on(act)

            first = go_on(_with_jobs(act, others))
            if first.HasField("failed"):
                return first
            last = go_on(_with_jobs(act, updates))
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
    """Runs workflows like `runner`, but holds back events that a query brings too early.

    It keeps `cached` workflows, the most recently used. The SDK's own cache is larger, because the
    SDK loses workflow tasks when it is full: docs/upstream/3. A query that waits for a Worker comes
    with events of a workflow task that was not given out yet. The SDK applies them at once, but a
    replay applies them with the rest of that task, so that commands come in another order
    (`TMPRL1100`). Here the workflow answers in the state after its last task, and leaves the cache
    before the next one: docs/decisions/0004.
    """

    def __init__(self, runner: WorkflowRunner, cached: int) -> None:
        super().__init__(runner)
        self._cached = cached
        # the ids of cached ones, the last used at the end
        self._used: OrderedDict[str, None] = OrderedDict()
        self._worker: Worker | None = None

    @property
    def cache_size(self) -> int:
        """The size of the SDK's own cache."""
        return self._cached + (_CACHE_MARGIN if version == _WRITTEN_FOR else 0)

    def serve(self, worker: Worker) -> None:
        """Sets the Worker that workflows are run for; without it nothing is held back."""
        if _fits("whole tasks", worker, "_bridge_worker"):
            self._worker = worker

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Returns an instance that gets only whole workflow tasks."""
        instance = self._runner.create_instance(det)
        if self._worker is None:
            return instance
        from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

        go_on = instance.activate
        events = 0  # of the history, as the workflow knows it
        task = 0  # the time of its last task
        held = False

        def activate(act: "WorkflowActivation") -> "WorkflowActivationCompletion":
            nonlocal events, task, held
            kinds = {job.WhichOneof("variant") for job in act.jobs}
            self._note_use(act.run_id, leaves="remove_from_cache" in kinds)
            if kinds <= _QUIET:
                completion = go_on(act)
                if held and "query_workflow" in kinds:
                    self._evict(act.run_id)
                return completion

            completion = WorkflowActivationCompletion(run_id=act.run_id)
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

            events = act.history_length
            task = started
            return go_on(act)

        instance.activate = activate  # type: ignore[method-assign]
        return instance

    def _note_use(self, run_id: str, *, leaves: bool) -> None:
        self._used.pop(run_id, None)
        if leaves:
            return
        self._used[run_id] = None
        if len(self._used) > self._cached:
            oldest, _ = self._used.popitem(last=False)
            self._evict(oldest)  # a workflow at work leaves at the end of its task

    def _evict(self, run_id: str) -> None:
        if self._worker is not None and self._worker._bridge_worker is not None:
            self._worker._bridge_worker.request_workflow_eviction(run_id)
