"""Slots of worker agents: how many may work at a time, in a run and in each role.

The slots of a tree are the root's. A nested supervisor begins with the slot of its subtask, which is its first one to
use, and is lent more by the supervisor above as long as there are some. It keeps one, unless all
its work waits. So every level can go on, and all of them together never have more than the root.
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
class Loan:
    """The slots of a nested supervisor, as the one above it or as itself knows them.

    `given` and `returned` only grow: whoever learns of one late has counted too many as lent, never too few. `wanted`
    is how many it could use now, none if all its work waits. With a `cap`, 1 or more, others wait: it returns what it
    does not use, and what is above that.
    """

    given: int = 1
    returned: int = 0
    wanted: int = 1
    cap: int | None = None

    @property
    def out(self) -> int:
        """How many it has now."""
        return self.given - self.returned

    @property
    def usable(self) -> int:
        """How many it may use now."""
        return self.out if self.cap is None else min(self.out, self.cap)


class Slots:
    """The slots of a run, `most()` at a time; a role may have fewer (`max_parallel`).

    Whoever has to wait gets a slot in the order of asking, before anybody who asks later. `borrowed` are those of a
    nested supervisor, None in the root; `loans` are those lent on, by subtask. `left_waiting` is how many subtasks are
    ready and lack a slot. `at_wait` is True while work here or below waits for a provider, a person, or budget.
    """

    def __init__(self, most: Callable[[], int], borrowed: Loan | None = None) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._queue: list[Slot] = []
        self.borrowed = borrowed
        self.loans: dict[str, Loan] = {}
        self.left_waiting = 0
        self.at_wait: Callable[[], bool] = lambda: False

    @property
    def total(self) -> int:
        """How many worker agents may work at a time, in nested runs, too."""
        return self._most() if self.borrowed is None else min(self._most(), self.borrowed.usable)

    @property
    def held(self) -> int:
        """How many worker agents may work now; those that are lent count whether they are used or not."""
        return self._held.total() + sum(loan.out - 1 for loan in self.loans.values())

    @property
    def full(self) -> bool:
        """True if nobody else may begin."""
        return self.held >= self.total

    @property
    def wanted(self) -> int:
        """How many could be used now, if there were enough; one at least, unless all work waits."""
        below = sum(max(0, loan.wanted - loan.out) for loan in self.loans.values())
        wanted = min(self._most(), self.held + below + self._waiting)
        return wanted if self.at_wait() else max(1, wanted)

    @property
    def _waiting(self) -> int:
        return self.left_waiting + sum(self._has_room_in_role(slot.role) for slot in self._queue)

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

    def move(self, slot: Slot, role: RoleCard) -> bool:
        """Makes a held slot one of another role. Returns False, and changes nothing, if that has no room."""
        if not self._has_room_in_role(role):
            return False
        self._held[slot.role.name] -= 1
        self._held[role.name] += 1
        slot.role = role
        self.serve()
        return True

    def give_back(self, slot: Slot) -> None:
        """Ends the right to work, or the wait for it. Nothing happens if there is neither."""
        if slot in self._queue:
            self._queue.remove(slot)
        if slot.held:
            slot.held = False
            self._held[slot.role.name] -= 1
            self.serve()

    def serve(self) -> None:
        """Gives those that wait what is free: called by whatever frees slots, or adds some."""
        for slot in [slot for slot in self._queue if not self.full]:
            if self.has_room(slot.role):
                self._queue.remove(slot)
                self._held[slot.role.name] += 1
                slot.held = True

    # --- nested runs ------------------------------------------------------------------------------

    def lend(self) -> None:
        """Shares the slots anew among own worker agents and nested runs, one to each in turn.

        A nested run with more than its share gets a cap; one with less is given what is free. One that wants none
        returns what it has without a word.
        """
        shares = {key: min(1, loan.wanted) for key, loan in self.loans.items()}
        left = self.total - self._held.total() - self._waiting + sum(1 - share for share in shares.values())
        while left > 0 and (unmet := [key for key, loan in self.loans.items() if shares[key] < loan.wanted]):
            for key in unmet[:left]:
                shares[key] += 1
            left -= len(unmet)
        free = self.total - self.held - self._waiting
        for key, loan in self.loans.items():
            loan.cap = shares[key] if 0 < shares[key] < loan.out else None
            more = max(0, min(shares[key] - loan.out, free))
            loan.given += more
            free -= more

    def return_spare(self) -> None:
        """Returns to the supervisor above what is not used, if others wait for it; all, while no work can go on."""
        loan, wanted = self.borrowed, self.wanted
        if loan is not None and (loan.cap is not None or not wanted):
            used = max(self.held, min(wanted, loan.usable))
            loan.returned += max(0, loan.out - used)

    def _has_room_in_role(self, role: RoleCard) -> bool:
        return role.max_parallel is None or self._held[role.name] < role.max_parallel
