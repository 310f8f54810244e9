"""Supervisors in supervisors: sums and waits of those below, and slots, given in order and lent to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.plan import Plan, Subtask
from supervision.contract.progress import Counts, NestedRun
from supervision.contract.status import Wait
from supervision.contract.team import RoleCard
from supervision.contract.usage import Usage
from supervision.run.board import Board
from supervision.run.nested_runs import NESTED_STEPS, NestedRuns, WaitChanges, milestone
from supervision.run.slots import Slot, SlotLease, Slots
from tests.unit.shapes import Clock


def wait(name: str, why: str = "no credit") -> Wait:
    return Wait(id=name, kind="resume", workflow_id="r/t1/1", prompt_preview=why, since="")


def runs(*subtask_ids: str) -> NestedRuns:
    """Nested supervisors at work."""
    plan = Plan(subtasks=[Subtask(id=name, description="d", role="r") for name in subtask_ids])
    nested = NestedRuns(Board(plan, Clock()))
    for subtask_id in subtask_ids:
        nested.begin(subtask_id)
    return nested


def test_sums_are_over_all_levels_and_what_has_ended_is_booked_elsewhere() -> None:
    nested = runs("t1", "t2", "t3")
    nested.report("t3", NestedRun(counts=Counts(total=2, running=2)), WaitChanges())
    assert not nested.has_finding
    nested.end("t3")
    left = nested._board["t3"].nested
    assert left is not None
    assert (left.phase, left.status, left.counts.total) == ("failed", "partial", 2)
    for subtask_id in ("t1", "t2"):
        run = NestedRun(counts=Counts(total=3, completed=2, running=1), usage=Usage(model_calls=4))
        nested.report(subtask_id, run, WaitChanges())
    assert nested.counts == Counts(total=8, completed=4, running=4)
    assert nested.usage.model_calls == 8
    assert nested.has_finding
    last = NestedRun(phase="done", counts=Counts(total=3, completed=3), usage=Usage(model_calls=5))
    nested.end("t1", last)
    assert nested.usage.model_calls == 4
    assert nested.counts.completed == 5
    assert nested._board["t1"].nested == last


def test_waits_change_by_what_has_begun_and_ended() -> None:
    nested = runs("t1")

    def report(**changes: object) -> list[Wait]:
        nested.report("t1", NestedRun(), WaitChanges.model_validate(changes))
        return nested.waits()

    def below(*waits: Wait) -> list[Wait]:
        return [one.below("t1") for one in waits]

    assert report(begun=[wait("a"), wait("b")]) == below(wait("a"), wait("b"))
    assert report(begun=[wait("b", "still no credit")], ended=["a", "unknown"]) == below(wait("b", "still no credit"))
    nested.end("t1")
    assert nested.waits() == []


def test_milestones_are_as_many_for_a_large_run_and_count_that_work_begins_or_rests() -> None:
    for total in (20, 400, 1000):
        seen = {milestone("executing", Counts(total=total, completed=done, running=1)) for done in range(total + 1)}
        assert NESTED_STEPS <= len(seen) <= NESTED_STEPS + 2
    resting, one, many = (milestone("executing", Counts(total=400, running=n)) for n in (0, 1, 8))
    assert resting != one
    assert one == many
    found, failed = Counts(total=400, completed=1), Counts(total=400, failed=1)
    assert milestone("executing", found) != milestone("executing", failed), "the first finding is one"


# --- slots -------------------------------------------------------------------------------------------


WIDE = RoleCard(name="wide", description="Works.", model="m")
NARROW = RoleCard(name="narrow", description="Works alone.", model="m", max_parallel=1)


def slots(total: int = 2) -> Slots:
    return Slots(lambda: total)


def test_slots_are_given_in_the_order_of_asking() -> None:
    one = slots(1)
    holder = one.take(WIDE)
    first, second = Slot(WIDE), Slot(WIDE)
    one.ask(first)
    one.ask(second)
    assert holder
    assert (first.held, second.held) == (False, False)
    one.give_back(holder)
    one.give_back(holder)
    assert (first.held, second.held, one.take(WIDE)) == (True, False, None)


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["ask", "give_back"]), st.booleans(), st.integers(0, 9))))
def test_limits_hold_and_nobody_waits_who_could_work(total: int, steps: list[tuple[str, bool, int]]) -> None:
    some, known = slots(total), list[Slot]()
    for action, narrow, index in steps:
        if action == "ask":
            known.append(Slot(NARROW if narrow else WIDE))
            some.ask(known[-1])
        elif known:
            some.give_back(known.pop(index % len(known)))
        held = [slot.role.name for slot in known if slot.held]
        assert some.held == len(held) <= total
        assert held.count("narrow") <= 1
        assert not any(some.has_room(slot.role) for slot in known if not slot.held)


def lending(total: int, *loans: SlotLease, starved: int = 0) -> Slots:
    """A supervisor with nothing but nested ones at work, after it has shared its slots; each took one to begin."""
    some = slots(total)
    for number, loan in enumerate(loans):
        assert some.take(WIDE)
        some.leases[f"t{number}"] = loan
    some.starved = starved
    some.lend()
    return some


def test_own_work_that_waits_has_its_slots_before_nested_runs_get_more() -> None:
    large, small = SlotLease(granted=2, wanted=8), SlotLease(wanted=8)
    lending(3, large, small, starved=1)
    assert (large.cap, small.cap) == (1, None)
    assert (large.held, small.held) == (2, 1)


@pytest.mark.parametrize(("starved", "held"), [(0, [4, 2, 1]), (1, [4, 1, 1])])
def test_no_more_is_lent_than_is_free(starved: int, held: list[int]) -> None:
    loans = [SlotLease(granted=4, wanted=8), SlotLease(wanted=8), SlotLease(wanted=8)]
    lending(7, *loans, starved=starved)
    assert [loan.held for loan in loans] == held


def test_who_wants_none_leaves_its_slot_to_others_and_gets_no_cap() -> None:
    resting, eager = SlotLease(wanted=0), SlotLease(wanted=8)
    some = lending(4, resting, eager)
    assert (resting.cap, eager.held) == (None, 3)
    resting.returned += 1
    some.lend()
    assert eager.held == 4


def test_the_supervisor_above_is_told_what_all_below_could_use() -> None:
    lease = SlotLease(granted=3)
    some = Slots(lambda: 20, lease)
    assert some.take(WIDE)
    some.return_spare()
    assert lease.returned == 0, "nothing else needs it"
    some.leases["t0"] = SlotLease(wanted=5)
    assert some.wanted == 5
    some.leases["t0"].granted = 7
    assert some.wanted == 7, "what it has more than it wants is not free yet"
    some.ask(Slot(WIDE))
    assert some.wanted == 8


# --- trees ----------------------------------------------------------------------------------------------


class Branch:
    """A supervisor of a tree: `own` worker agents that it could use at once, and others below it."""

    def __init__(self, most: int, own: int, below: "list[Branch] | None" = None) -> None:
        self.slots = Slots(lambda: most)
        self.own = own
        self.below = below or []
        self.begun: list[Branch] = []
        self.held: list[Slot] = []

    def begin(self) -> None:
        """Begins what there are slots for, nested ones first; counts what is left."""
        for branch in self.below:
            if branch not in self.begun and self.slots.take(WIDE):
                branch.slots.lease = self.slots.leases[str(id(branch))] = SlotLease()
                self.begun.append(branch)
        while len(self.held) < self.own and (slot := self.slots.take(WIDE)):
            self.held.append(slot)
        self.slots.starved = self.own - len(self.held) + len(self.below) - len(self.begun)
        self.slots.lend()
        for branch in self.begun:
            branch.begin()
            branch.slots.return_spare()
            assert branch.slots.lease
            branch.slots.lease.wanted = branch.slots.wanted

    def end(self, agents: int) -> None:
        """Ends so many of the own worker agents."""
        for _ in range(min(agents, len(self.held))):
            self.own -= 1
            self.slots.give_back(self.held.pop())

    @property
    def working(self) -> int:
        """How many worker agents work, here and below."""
        return len(self.held) + sum(branch.working for branch in self.begun)

    @property
    def idle(self) -> int:
        """How many nested ones have no work for the one slot that each keeps."""
        return sum(branch.idle + (not branch.held and not branch.begun) for branch in self.begun)

    def settle(self) -> None:
        """Lets messages pass until nothing changes any more."""
        for _ in range(12):
            self.begin()


def test_what_is_free_is_lent_and_comes_back_when_others_wait() -> None:
    busy, later = Branch(8, 20), Branch(8, 0)
    root = Branch(8, 1, [busy, later])
    root.settle()
    assert (busy.working, later.working, root.working) == (6, 0, 7)
    later.own = 20
    root.settle()
    assert (busy.working, later.working) == (6, 1)  # nobody is stopped
    busy.end(6)
    root.settle()
    assert (busy.working, later.working, root.working) == (4, 3, 8)


def test_who_has_only_work_that_waits_returns_all_and_asks_again() -> None:
    deep = Branch(2, 1)
    middle = Branch(2, 0, [deep])
    root = Branch(2, 2, [middle])
    root.settle()
    assert (deep.working, root.working) == (1, 2)
    deep.own = 0
    deep.slots.give_back(deep.held.pop())  # it waits for a provider
    waits = True
    middle.slots.is_waiting = deep.slots.is_waiting = lambda: waits
    root.settle()
    assert (deep.slots.total, middle.slots.total, len(root.held)) == (0, 0, 2)
    waits, deep.own = False, 1
    root.settle()
    assert deep.working == 0, "nobody is stopped for it"
    root.end(1)
    root.settle()
    assert (deep.working, root.working) == (1, 2)


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(1, 6), max_size=3)), max_size=4),
    st.lists(st.integers(0, 9), max_size=8),
)
def test_a_tree_never_has_more_at_work_than_its_root_and_no_slot_is_lost(
    total: int, shape: list[tuple[int, list[int]]], ends: list[int]
) -> None:
    branches = [Branch(total, own, [Branch(total, leaf) for leaf in leaves]) for own, leaves in shape]
    root = Branch(total, 2, branches)
    every = [root, *branches, *[leaf for branch in branches for leaf in branch.below]]
    for index in [*ends, *range(len(every))]:
        root.settle()
        assert root.working <= total
        wanting = [b for b in root.begun if b.own > len(b.held) and not b.below]
        assert root.working + root.idle == total or not wanting
        every[index % len(every)].end(1)
