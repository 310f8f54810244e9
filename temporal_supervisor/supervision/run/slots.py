"""Slots of worker agents: how many may work at a time.

The slots of a tree are the root's. A nested run has a share of them from its start to its end, which grows as other
work ends, but none while all its work waits. So waiting work holds no slot, every level can continue, and all together
never have more than the root.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import Model


@dataclass(eq=False)
class Slot:
    """The right of one worker agent to work, while `held`."""

    held: bool = False


class SlotLease(Model):
    """The slots of a nested run, as it or the supervisor above knows them, and as they tell each other.

    It was `given` them and `returned` them so often. Both only grow: a late message leaves slots idle and never counts
    one twice. It is `wanted` while the run has none and could work.
    """

    slots: Annotated[int, Field(ge=1, le=limits.MAX_PARALLEL)] = 1
    given: int = 1
    returned: int = 0
    wanted: bool = False

    @property
    def held(self) -> int:
        """The number of slots that it has now."""
        return self.slots if self.given > self.returned else 0

    def take(self, told: "SlotLease") -> None:
        """Takes over what the other side knows."""
        if (told.given, told.slots) > (self.given, self.slots):
            self.slots, self.given = told.slots, told.given
        self.returned = max(self.returned, told.returned)
        self.wanted = told.wanted and not self.held


class Slots:
    """The slots of a run, `most()` at a time. First come, first served.

    `lease` is what a nested run has from above, None in the root; `leases` are those of the runs below, by subtask.
    `starved` is True while subtasks are ready and lack a slot, `is_waiting` while work here or below waits for
    a provider, a person, or budget.
    """

    def __init__(self, most: Callable[[], int], lease: SlotLease | None = None) -> None:
        self._most = most
        self._held = 0
        self._queue: list[Slot] = []
        self.lease = lease
        self.leases: dict[str, SlotLease] = {}
        self.starved = False
        self.is_waiting: Callable[[], bool] = lambda: False

    @property
    def total(self) -> int:
        """The number of worker agents that may work at a time, in nested runs, too."""
        return self._most() if self.lease is None else min(self._most(), self.lease.held)

    @property
    def held(self) -> int:
        """The number of slots held here or lent.

        A nested run's first one is that of its subtask.
        """
        return self._held + sum(lease.held - 1 for lease in self.leases.values())

    @property
    def full(self) -> bool:
        """True if no other worker agent may begin."""
        return self.held >= self.total

    def take(self) -> Slot | None:
        """Returns a slot; None if there is none now."""
        if self.full:
            return None
        self._held += 1
        return Slot(held=True)

    def ask(self, slot: Slot) -> None:
        """Has the slot held as soon as there is room for it."""
        self._queue.append(slot)
        self.serve()

    def give_back(self, slot: Slot) -> None:
        """Ends the right to work, or the wait for it; without either it changes nothing."""
        if slot in self._queue:
            self._queue.remove(slot)
        if slot.held:
            slot.held = False
            self._held -= 1
            self.serve()

    def serve(self) -> None:
        """Gives free slots to work that waits for them, here and below: called by whatever frees or needs some."""
        while self._queue and not self.full:
            self._held += 1
            self._queue.pop(0).held = True
        for lease in self.leases.values():
            if lease.wanted and not self.full:
                lease.slots = min(lease.slots, self.total - self.held)
                lease.given, lease.wanted = lease.returned + 1, False

    def note_starved(self, starved: bool) -> None:
        """Sets `starved`: True if subtasks are ready and lack a slot."""
        self.starved = starved

    # --- nested runs ------------------------------------------------------------------------------

    def live_on(self, lease: SlotLease, is_waiting: Callable[[], bool]) -> None:
        """Has a nested run work in the slots that it has from above.

        `is_waiting` is True while some of it waits.
        """
        self.lease = lease
        self.is_waiting = is_waiting

    def end_lease(self, subtask_id: str) -> None:
        """Takes back the slots of a nested run that has ended."""
        self.leases.pop(subtask_id, None)
        self.serve()

    def lend(self, subtask_id: str, subtasks: int) -> SlotLease:
        """Lends a nested run that begins, in the slot of its subtask, its share of all slots among so many subtasks."""
        free = self.total - self.held
        self.leases[subtask_id] = SlotLease(slots=1 + max(0, min(free, self.total // max(1, subtasks) - 1)))
        return self.leases[subtask_id]

    def grow(self, subtasks: int) -> None:
        """Gives nested runs more of the free slots as other work ends: each its share among so many subtasks."""
        for lease in self.leases.values():
            if lease.held:
                more = min(self.total // max(1, subtasks) - lease.slots, self.total - self.held)
                lease.slots += max(0, more)

    def settle(self) -> None:
        """Returns the slots of a nested run while all its work waits, and asks for them when some could continue."""
        if self.lease is None:
            return
        needed = self.starved or bool(self._queue) or any(lease.wanted for lease in self.leases.values())
        if self.lease.held and self.is_waiting() and not self.held and not needed:
            self.lease.returned = self.lease.given
        self.lease.wanted = needed and not self.lease.held
