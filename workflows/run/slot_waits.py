"""Waits for the slots of a run."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.run.slots import Slot, Slots


class SlotWaits:
    """Waits for slots; the dispatch is woken when a wait begins or a slot becomes free."""

    def __init__(self, slots: Slots, changed: asyncio.Event) -> None:
        self._slots = slots
        self._changed = changed

    async def acquire(self, slot: Slot) -> None:
        """Returns when the slot is held.

        Worker agents under way come before subtasks that have not begun.
        """
        if slot.held:
            return
        self._slots.enqueue(slot)
        if not slot.held:
            # The dispatch holds the clock if a nested run keeps the slot while it waits for people.
            self._changed.set()
        await workflow.wait_condition(lambda: slot.held)

    def release(self, slot: Slot | None) -> None:
        """Gives the slot back, if there is one, for other work that waits."""
        if slot is not None:
            self._slots.release(slot)
            self._changed.set()
