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
    `in_turn` is being replayed. The SDK asks in the event loop of the Worker, and tells of tasks in threads of its own.
    """

    def __init__(self, each: int, in_turn: Collection[str]) -> None:
        self._each = each
        self._in_turn = in_turn
        self._permits: set[_Permit] = set()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Returns a permit as soon as there may be one more task of that kind."""
        return self.try_reserve_slot(ctx) or await self._next(ctx)

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Returns a permit if there may be one more task of that kind now."""
        of_its_kind = [permit for permit in tuple(self._permits) if permit.is_cached == ctx.is_sticky]
        if len(of_its_kind) >= self._each or any(permit.is_alone for permit in of_its_kind):
            return None
        permit = _Permit(is_cached=ctx.is_sticky)
        self._permits.add(permit)
        return permit

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Notes which workflow the task is of."""
        if isinstance(ctx.permit, _Permit) and isinstance(ctx.slot_info, WorkflowSlotInfo):
            ctx.permit.workflow = ctx.slot_info.workflow_type
            if ctx.permit.workflow not in self._in_turn:
                self._go_on(ctx.permit)

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Notes that the task is done, or that there was none."""
        if isinstance(ctx.permit, _Permit):
            self._permits.discard(ctx.permit)
            self._go_on(ctx.permit)

    def replayed(self, workflow: str) -> None:
        """Notes that a workflow of that type is replayed, or new: from here on it does what it has not done before."""
        for permit in tuple(self._permits):
            if permit.is_alone and permit.workflow == workflow:
                self._go_on(permit)

    async def _next(self, ctx: SlotReserveContext) -> SlotPermit:
        changed = asyncio.Event()
        self._waiting[changed] = asyncio.get_running_loop()  # before it looks again, so that no change is missed
        try:
            while (permit := self.try_reserve_slot(ctx)) is None:
                await changed.wait()
                changed.clear()
            return permit
        finally:
            del self._waiting[changed]

    def _go_on(self, permit: "_Permit") -> None:
        permit.is_alone = False
        for changed, loop in tuple(self._waiting.items()):
            loop.call_soon_threadsafe(changed.set)


class _Permit(SlotPermit):
    """For one task; while it `is_alone`, others of its kind wait."""

    def __init__(self, *, is_cached: bool) -> None:
        self.is_cached = is_cached
        self.is_alone = not is_cached
        self.workflow: str | None = None
