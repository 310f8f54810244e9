"""Slots of worker agents: the number that may work at a time.

A nested run gets a fixed number when it starts and keeps them until it ends, so that all levels
together never exceed the root's number. Its own worker agents use them.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False)
class Slot:
    """The right to work on a subtask, while it is `held`.

    A worker agent uses one of the run's places, a nested run uses `places` of them.
    """

    subtask_id: str = ""
    places: int = 1
    held: bool = False


class Slots:
    """The slots of a run, at most `most()` at a time, first come, first served."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._queue: list[Slot] = []
        self.held = 0

    @property
    def free(self) -> int:
        """The number of free places."""
        return max(0, self._most() - self.held)

    @property
    def full(self) -> bool:
        """True if no place is free."""
        return self.free == 0

    @property
    def queued(self) -> set[str]:
        """The subtasks whose work only lacks a slot."""
        return {slot.subtask_id for slot in self._queue}

    def share(self, subtasks: int) -> int:
        """Returns the number of places for a nested run, if `subtasks` may begin now.

        It is at least one; a lone nested run gets all free places.
        """
        return max(1, self.free // max(1, subtasks))

    def occupy(self, subtask_id: str, places: int = 1) -> Slot | None:
        """Returns a held slot of at most `places` places; None if none is free."""
        if self.full:
            return None
        slot = Slot(subtask_id, places)
        self._hold(slot)
        return slot

    def enqueue(self, slot: Slot) -> None:
        """Holds the slot as soon as there is room for it."""
        self._queue.append(slot)
        self._serve()

    def release(self, slot: Slot) -> None:
        """Frees the slot, or removes it from the queue."""
        if slot in self._queue:
            self._queue.remove(slot)
        if slot.held:
            slot.held = False
            self.held -= slot.places
            self._serve()

    def _serve(self) -> None:
        """Assigns free places to queued slots."""
        while self._queue and not self.full:
            self._hold(self._queue.pop(0))

    def _hold(self, slot: Slot) -> None:
        slot.places = min(slot.places, self.free)
        slot.held = True
        self.held += slot.places
