"""Slots for workflow tasks: large workflows are replayed one after the other.

The ten seconds of a workflow task begin when a Worker takes it. After a restart all runs come at once, each with its
whole history, and side by side in one interpreter each of them takes as long as all together. Taken only when the one
before is replayed, each has all of its time. See docs/decisions/0018.
"""

import asyncio
import time
from collections.abc import Collection

from temporalio.worker import (
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkflowSlotInfo,
)

from runtime.experimental import CustomSlotSupplier


class TaskSlots(CustomSlotSupplier):
    """Gives out `each` slots for tasks of workflows in the cache, and as many for others: new, or to be replayed.

    Of the others there is no further one while it is not known what the last one brought, or a workflow of the types
    `in_turn` is being replayed. The SDK asks in the event loop of the Worker, and tells of tasks in threads of its own;
    of replays it tells nothing: who runs the workflows does.

    Who waits has `patience`, in seconds, with what was not said to be replayed: a task that the SDK lost, or one of a
    workflow in the cache, which the server gave away because the Worker was late. A replay has `longest`.

    A task that takes more than `longest` waits for a local activity, as for a store that is away, or it was lost with
    its slot (temporalio 1.35.0, "Extra buffered run should not have produced an activation"). It does not count among
    the `each`, or three of them would keep all other runs from going on; `most` bounds them all.
    """

    def __init__(self, each: int, most: int, in_turn: Collection[str], patience: float, longest: float) -> None:
        self._each = each
        self._most = most
        self._in_turn = in_turn
        self._patience = patience
        self._longest = longest
        self._permits: set[_Permit] = set()
        self._waiting: dict[asyncio.Event, bool] = {}  # who waits for what, for a cached workflow or others
        self._loop: asyncio.AbstractEventLoop | None = None

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Returns a permit as soon as there may be one more task of that kind."""
        self._loop = asyncio.get_running_loop()
        return self._give(ctx) or await self._next(ctx)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Returns None: nothing starts workflows in the Worker that runs them."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Notes which workflow the task is of."""
        if isinstance(ctx.permit, _Permit) and isinstance(ctx.slot_info, WorkflowSlotInfo):
            ctx.permit.workflow, ctx.permit.since = ctx.slot_info.workflow_type, time.monotonic()
            if ctx.permit.workflow not in self._in_turn:
                self._go_on(ctx.permit)

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Notes that the task is done, or that there was none."""
        if isinstance(ctx.permit, _Permit):
            self._permits.discard(ctx.permit)
            self._go_on(ctx.permit)

    def replay_begins(self, workflow: str) -> None:
        """Notes that a workflow of that type is being replayed."""
        for permit in self._alone(workflow):
            permit.replays = True

    def goes_on(self, workflow: str) -> None:
        """Notes that a workflow of that type is replayed, or was new: from here on it does something new."""
        for permit in self._alone(workflow):
            self._go_on(permit)

    def _alone(self, workflow: str) -> "list[_Permit]":
        return [permit for permit in tuple(self._permits) if permit.is_alone and permit.workflow == workflow]

    def _of_kind(self, *, is_cached: bool) -> "list[_Permit]":
        return [permit for permit in tuple(self._permits) if permit.is_cached == is_cached]

    def _give(self, ctx: SlotReserveContext) -> "_Permit | None":
        given = self._of_kind(is_cached=ctx.is_sticky)
        usual = time.monotonic() - self._longest
        counted = [permit for permit in given if permit.since is None or permit.since > usual]
        if len(counted) >= self._each or len(given) >= self._most or any(permit.is_alone for permit in given):
            return None
        permit = _Permit(is_cached=ctx.is_sticky)
        self._permits.add(permit)
        return permit

    async def _next(self, ctx: SlotReserveContext) -> SlotPermit:
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        began = loop.time()
        self._waiting[changed] = ctx.is_sticky  # before it looks again, so that no change is missed
        try:
            while (permit := self._give(ctx)) is None:
                try:
                    await asyncio.wait_for(changed.wait(), self._patience)
                except TimeoutError:
                    for given in self._of_kind(is_cached=ctx.is_sticky):
                        given.is_alone &= given.replays and loop.time() - began < self._longest
                changed.clear()
            return permit
        finally:
            del self._waiting[changed]

    def _go_on(self, permit: "_Permit") -> None:
        permit.is_alone = False
        for changed, is_cached in tuple(self._waiting.items()):
            if is_cached == permit.is_cached:
                assert self._loop is not None  # of whoever waits
                self._loop.call_soon_threadsafe(changed.set)


class _Permit(SlotPermit):
    """For one task; while it `is_alone`, others of its kind wait. `replays` is True once its workflow is replayed."""

    def __init__(self, *, is_cached: bool) -> None:
        self.is_cached = is_cached
        self.is_alone = not is_cached
        self.replays = False
        self.workflow: str | None = None
        self.since: float | None = None  # when the task came
