"""Slots for workflow tasks: large workflows are replayed one after the other.

The ten seconds of a workflow task begin when a Worker takes it. After a restart all runs come at once, each with its
whole history, and side by side in one interpreter each of them takes as long as all together. Taken only when the one
before is replayed, each has all of its time. See docs/decisions/0018.
"""

import asyncio
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
    of replays it tells nothing: who runs the workflows does. A task of which no replay begins within `patience` seconds
    is of a workflow that was in the cache all the same: the server gave its task away, as the Worker was late.
    """

    def __init__(self, each: int, in_turn: Collection[str], patience: float) -> None:
        self._each = each
        self._in_turn = in_turn
        self._patience = patience
        self._permits: set[_Permit] = set()
        self._waiting: set[asyncio.Event] = set()
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
            ctx.permit.workflow = ctx.slot_info.workflow_type
            if ctx.permit.workflow not in self._in_turn:
                self._go_on(ctx.permit)
            elif self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.call_later, self._patience, self._presume_cached, ctx.permit)

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

    def _give(self, ctx: SlotReserveContext) -> "_Permit | None":
        of_its_kind = [permit for permit in tuple(self._permits) if permit.is_cached == ctx.is_sticky]
        if len(of_its_kind) >= self._each or any(permit.is_alone for permit in of_its_kind):
            return None
        permit = _Permit(is_cached=ctx.is_sticky)
        self._permits.add(permit)
        return permit

    async def _next(self, ctx: SlotReserveContext) -> SlotPermit:
        changed = asyncio.Event()
        self._waiting.add(changed)  # before it looks again, so that no change is missed
        try:
            while (permit := self._give(ctx)) is None:
                await changed.wait()
                changed.clear()
            return permit
        finally:
            self._waiting.discard(changed)

    def _presume_cached(self, permit: "_Permit") -> None:
        if not permit.replays:
            self._go_on(permit)

    def _go_on(self, permit: "_Permit") -> None:
        permit.is_alone = False
        for changed in tuple(self._waiting):
            assert self._loop is not None  # of whoever waits
            self._loop.call_soon_threadsafe(changed.set)


class _Permit(SlotPermit):
    """For one task; while it `is_alone`, others of its kind wait. `replays` is True once its workflow is replayed."""

    def __init__(self, *, is_cached: bool) -> None:
        self.is_cached = is_cached
        self.is_alone = not is_cached
        self.replays = False
        self.workflow: str | None = None
