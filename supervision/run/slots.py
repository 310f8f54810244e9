"""Slots of worker agents: how many may work at a time, in a run and in each role."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from supervision.contract.team import RoleCard


@dataclass(eq=False)
class Slot:
    """The right of one worker agent of `role` to work, while `held`."""

    role: RoleCard
    held: bool = False


class Slots:
    """The slots of a run, `total()` at a time; a role may have fewer (`max_parallel`).

    Whoever has to wait gets a slot in the order of asking, before anybody who asks later.
    """

    def __init__(self, total: Callable[[], int]) -> None:
        self._total = total
        self._held: Counter[str] = Counter()
        self._queue: list[Slot] = []

    @property
    def held(self) -> int:
        """How many worker agents may work now."""
        return self._held.total()

    @property
    def full(self) -> bool:
        """True if nobody else may begin."""
        return self.held >= self._total()

    def has_room(self, role: RoleCard) -> bool:
        """True if a worker agent of the role may begin now."""
        return not self.full and self._has_room_in_role(role)

    def take(self, role: RoleCard) -> Slot | None:
        """Returns a slot; None if there is none now."""
        if not self.has_room(role):
            return None
        self._held[role.name] += 1
        return Slot(role, held=True)

    def ask(self, slot: Slot) -> None:
        """Has the slot held as soon as there is room for it."""
        self._queue.append(slot)
        self._serve()

    def move(self, slot: Slot, role: RoleCard) -> bool:
        """Makes a held slot one of another role. Returns False, and changes nothing, if that has no room."""
        if not self._has_room_in_role(role):
            return False
        self._held[slot.role.name] -= 1
        self._held[role.name] += 1
        slot.role = role
        self._serve()
        return True

    def give_back(self, slot: Slot) -> None:
        """Ends the right to work, or the wait for it. Nothing happens if there is neither."""
        if slot in self._queue:
            self._queue.remove(slot)
        if slot.held:
            slot.held = False
            self._held[slot.role.name] -= 1
            self._serve()

    def _serve(self) -> None:
        for slot in [slot for slot in self._queue if not self.full]:
            if self.has_room(slot.role):
                self._queue.remove(slot)
                self._held[slot.role.name] += 1
                slot.held = True

    def _has_room_in_role(self, role: RoleCard) -> bool:
        return role.max_parallel is None or self._held[role.name] < role.max_parallel
