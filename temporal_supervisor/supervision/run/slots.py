"""Slots of worker agents: how many may work at a time.

A nested run gets a number of them when it starts and keeps them until it ends, so that all levels
together never have more than the root. Its own worker agents hold and free them inside it.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False)
class Slot:
    """The right to work on a subtask, while `held`.

    A worker agent takes one of the run's places, a nested run as many as it has `places`.
    """

    subtask_id: str = ""
    places: int = 1
    held: bool = False


class Slots:
    """The slots of a run, `most()` at a time. First come, first served."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._queue: list[Slot] = []
        self.held = 0

    @property
    def free(self) -> int:
        """The number of places that nobody holds."""
        return max(0, self._most() - self.held)

    @property
    def full(self) -> bool:
        """True if no other work may begin."""
        return self.free == 0

    @property
    def queued(self) -> set[str]:
        """The subtasks of which some work lacks nothing but a slot."""
        return {slot.subtask_id for slot in self._queue}

    def share(self, subtasks: int) -> int:
        """Returns the number of places for a nested run, one of so many subtasks that may begin now.

        At least one; a lone one gets all that are free.
        """
        return max(1, self.free // max(1, subtasks))

    def occupy(self, subtask_id: str, places: int = 1) -> Slot | None:
        """Returns a slot of at most so many places; None if there is none now."""
        if self.full:
            return None
        slot = Slot(subtask_id, places)
        self._hold(slot)
        return slot

    def enqueue(self, slot: Slot) -> None:
        """Has the slot held as soon as there is room for it."""
        self._queue.append(slot)
        self._serve()

    def release(self, slot: Slot) -> None:
        """Ends the right to work, or the wait for it; without either it changes nothing."""
        if slot in self._queue:
            self._queue.remove(slot)
        if slot.held:
            slot.held = False
            self.held -= slot.places
            self._serve()

    def _serve(self) -> None:
        """Gives free places to work that waits for them."""
        while self._queue and not self.full:
            self._hold(self._queue.pop(0))

    def _hold(self, slot: Slot) -> None:
        slot.places = min(slot.places, self.free)
        slot.held = True
        self.held += slot.places
