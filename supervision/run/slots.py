"""Slots of worker agents: how many may work at a time, in a run and in each role.

The slots of a tree are the root's. A nested run begins with the slot of its subtask and is lent more as long as there
are some. It keeps one unless all its work waits. So every level can continue, and all together never have more than
the root.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from supervision.contract.team import RoleCard


@dataclass(eq=False)
class Slot:
    """The right of one worker agent of `role` to work, while `held`."""

    role: RoleCard
    held: bool = False


@dataclass
class SlotLease:
    """The slots of a nested run, as it or the supervisor above knows them.

    `granted` and `returned` only grow: a late message leaves a slot idle and never counts one twice. `wanted` is how
    many could be used now. A `cap`, 1 or more, is set while other work needs slots: the run returns those that it does
    not use, and those above the cap as worker agents end.
    """

    granted: int = 1
    returned: int = 0
    wanted: int = 1
    cap: int | None = None

    @property
    def held(self) -> int:
        """How many it has now."""
        return self.granted - self.returned

    @property
    def usable(self) -> int:
        """How many it may use now."""
        return self.held if self.cap is None else min(self.held, self.cap)


class Slots:
    """The slots of a run, `most()` at a time; a role may have fewer (`max_parallel`). First come, first served.

    `lease` is what a nested run has from above, None in the root; `leases` are those of the runs below, by subtask.
    `starved` is how many subtasks are ready and lack a slot. `is_waiting` is True while work here or below waits for
    a provider, a person, or budget.
    """

    def __init__(self, most: Callable[[], int], lease: SlotLease | None = None) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._queue: list[Slot] = []
        self.lease = lease
        self.leases: dict[str, SlotLease] = {}
        self.starved = 0
        self.is_waiting: Callable[[], bool] = lambda: False

    @property
    def total(self) -> int:
        """How many worker agents may work at a time, in nested runs, too."""
        return self._most() if self.lease is None else min(self._most(), self.lease.usable)

    @property
    def held(self) -> int:
        """How many are held here or lent; a nested run's first one is that of its subtask."""
        return self._held.total() + sum(lease.held - 1 for lease in self.leases.values())

    @property
    def full(self) -> bool:
        """True if no other worker agent may begin."""
        return self.held >= self.total

    @property
    def wanted(self) -> int:
        """How many could be used now, if there were enough; at least one, unless all work waits."""
        below = sum(max(0, lease.wanted - lease.held) for lease in self.leases.values())
        wanted = min(self._most(), self.held + below + self._lacking)
        return wanted if self.is_waiting() else max(1, wanted)

    @property
    def _lacking(self) -> int:
        return self.starved + sum(self._has_room_in_role(slot.role) for slot in self._queue)

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
        self.serve()

    def give_back(self, slot: Slot) -> None:
        """Ends the right to work, or the wait for it; without either it changes nothing."""
        if slot in self._queue:
            self._queue.remove(slot)
        if slot.held:
            slot.held = False
            self._held[slot.role.name] -= 1
            self.serve()

    def serve(self) -> None:
        """Gives free slots to those that wait: called by whatever frees slots, or adds some."""
        for slot in [slot for slot in self._queue if not self.full]:
            if self.has_room(slot.role):
                self._queue.remove(slot)
                self._held[slot.role.name] += 1
                slot.held = True

    # --- nested runs ------------------------------------------------------------------------------

    def lend(self) -> None:
        """Shares the slots evenly: a nested run with more than its share gets a cap, one with less what is free."""
        shares = {key: min(1, lease.wanted) for key, lease in self.leases.items()}
        left = self.total - self._held.total() - self._lacking + sum(1 - share for share in shares.values())
        while left > 0 and (unmet := [key for key, lease in self.leases.items() if shares[key] < lease.wanted]):
            for key in unmet[:left]:
                shares[key] += 1
            left -= len(unmet)
        free = self.total - self.held - self._lacking
        for key, lease in self.leases.items():
            lease.cap = shares[key] if 0 < shares[key] < lease.held else None
            more = max(0, min(shares[key] - lease.held, free))
            lease.granted += more
            free -= more

    def return_spare(self) -> None:
        """Returns to the supervisor above what is not used, if other work needs it; all, while no work can continue."""
        lease, wanted = self.lease, self.wanted
        if lease is not None and (lease.cap is not None or not wanted):
            lease.returned += max(0, lease.held - max(self.held, min(wanted, lease.usable)))

    def _has_room_in_role(self, role: RoleCard) -> bool:
        return role.max_parallel is None or self._held[role.name] < role.max_parallel
