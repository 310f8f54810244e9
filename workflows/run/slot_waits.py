"""Waits for the slots of a run."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.run.slots import Slot, Slots


class SlotWaits:
    """Has work wait for a slot, and wakes the dispatch when a wait begins or a slot is free."""

    def __init__(self, slots: Slots, changed: asyncio.Event) -> None:
        self._slots = slots
        self._changed = changed

    async def hold(self, slot: Slot) -> None:
        """Returns when the slot is held.

        Worker agents under way come before subtasks that are to begin.
        """
        if slot.held:
            return
        self._slots.enqueue(slot)
        if not slot.held:
            # The dispatch holds the clock if a nested run keeps the slot while it waits for people.
            self._changed.set()
        await workflow.wait_condition(lambda: slot.held)

    def free(self, slot: Slot | None) -> None:
        """Gives the slot back, if there is one; other work that waits for one begins."""
        if slot is not None:
            self._slots.release(slot)
            self._changed.set()
