"""Supervisors in supervisors: sums and waits of those below, and slots, given in order and lent to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
from temporal_supervisor.supervision.contract.status import Wait
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.nested_runs import NESTED_STEPS, NestedRuns, milestone
from temporal_supervisor.supervision.run.slots import Slot, SlotLease, Slots
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
    nested.report("t3", NestedRun(counts=Counts(total=2, running=2)), [])
    assert not nested.has_finding
    nested.end("t3")
    left = nested._board["t3"].nested
    assert left is not None
    assert (left.phase, left.status, left.counts.total) == ("failed", "partial", 2)
    for subtask_id in ("t1", "t2"):
        run = NestedRun(counts=Counts(total=3, completed=2, running=1), usage=Usage(model_calls=4))
        nested.report(subtask_id, run, [])
    assert nested.counts == Counts(total=8, completed=4, running=4)
    assert nested.usage.model_calls == 8
    assert nested.has_finding
    last = NestedRun(phase="done", counts=Counts(total=3, completed=3), usage=Usage(model_calls=5))
    nested.end("t1", last)
    assert nested.usage.model_calls == 4
    assert nested.counts.completed == 5
    assert nested._board["t1"].nested == last


def test_waits_are_those_of_the_last_report_and_none_once_it_has_ended() -> None:
    nested = runs("t1")
    for waits in ([wait("a"), wait("b")], [wait("b", "still no credit")]):
        nested.report("t1", NestedRun(), waits)
        assert nested.waits() == [one.below("t1") for one in waits]
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


def slots(total: int = 2) -> Slots:
    return Slots(lambda: total)


def test_a_nested_run_that_can_go_on_gets_what_is_free() -> None:
    some = slots(6)
    assert some.take()
    lease = some.lend("t1", 2)
    assert [some.take() is not None for _ in range(4)] == [True, True, True, False]
    lease.returned, lease.wanted = lease.given, True
    assert some.take()
    some.serve()
    assert (lease.slots, lease.given, lease.wanted, some.held) == (2, 2, False, 6)


def test_a_nested_run_without_work_keeps_its_slots_and_asks_for_none() -> None:
    for lease, returned in ((SlotLease(), 0), (SlotLease(returned=1), 1)):
        Slots(lambda: 2, lease).settle()
        assert (lease.given, lease.returned, lease.wanted) == (1, returned, False)


def test_slots_are_given_in_the_order_of_asking() -> None:
    one = slots(1)
    holder = one.take()
    first, second = Slot(), Slot()
    one.ask(first)
    one.ask(second)
    assert holder
    assert (first.held, second.held) == (False, False)
    one.give_back(holder)
    one.give_back(holder)
    assert (first.held, second.held, one.take()) == (True, False, None)


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 9))))
def test_limits_hold_and_nobody_waits_who_could_work(total: int, steps: list[tuple[bool, int]]) -> None:
    some, known = slots(total), list[Slot]()
    for asks, index in steps:
        if asks:
            known.append(Slot())
            some.ask(known[-1])
        elif known:
            some.give_back(known.pop(index % len(known)))
        assert some.held == sum(slot.held for slot in known) == min(total, len(known))


@pytest.mark.parametrize(
    ("total", "others", "agents", "lent"), [(8, 0, 1, 8), (8, 0, 3, 2), (8, 6, 2, 2), (2, 1, 9, 1), (1, 0, 1, 1)]
)
def test_a_nested_run_is_lent_its_share_and_no_more_than_is_free(
    total: int, others: int, agents: int, lent: int
) -> None:
    some = slots(total)
    for _ in range(others + 1):
        assert some.take()
    assert some.lend("t1", agents).held == lent
    assert some.held == others + lent <= total


def test_a_nested_run_grows_by_what_is_free_alone() -> None:
    some = slots(8)
    assert all(some.take() for _ in range(5))
    some.lend("t1", 5)
    some.grow(1)
    assert some.held == 8


def test_a_nested_run_has_more_as_other_work_ends_and_is_told_so() -> None:
    some = slots(8)
    held = [slot for _ in range(5) if (slot := some.take())]
    below = some.lend("t1", 5).model_copy()
    for ended, agents, grown in ((0, 5, 1), (1, 4, 2), (2, 2, 4), (1, 1, 8)):
        for _ in range(ended):
            some.give_back(held.pop())
        some.grow(agents)
        below.take(some.leases["t1"])
        assert (below.held, some.held) == (grown, len(held) - 1 + grown)
    below.take(SlotLease(slots=2))
    assert below.held == 8, "a late word takes nothing away"


def test_late_words_leave_slots_idle_and_never_count_one_twice() -> None:
    lease = SlotLease(slots=3, given=2, returned=1)
    lease.take(SlotLease(slots=3, returned=1, wanted=True))
    assert (lease.held, lease.wanted) == (3, False), "it has been given them since"
    lease.take(SlotLease(slots=3, given=2, returned=2, wanted=True))
    assert (lease.held, lease.wanted) == (0, True)
    lease.take(SlotLease(slots=4, given=5, returned=3))
    assert (lease.held, lease.wanted) == (4, False), "of a run that was reset the other side knows more"


# --- trees ----------------------------------------------------------------------------------------------


class Branch:
    """A supervisor of a tree: `own` worker agents that it could use at once, and others below it."""

    def __init__(self, most: int, own: int, below: "list[Branch] | None" = None) -> None:
        self.slots = Slots(lambda: most)
        self.slots.is_waiting = lambda: not self.busy
        self.own = own
        self.below = below or []
        self.begun: list[Branch] = []
        self.held: list[Slot] = []

    @property
    def busy(self) -> bool:
        """True if it or one below could work."""
        return bool(self.own) or any(branch.busy for branch in self.below)

    def begin(self) -> None:
        """Begins what there are slots for, nested ones first; counts what is left."""
        self.slots.serve()
        for branch in self.below:
            if branch not in self.begun and branch.busy and self.slots.take():
                branch.slots.lease = self.slots.lend(str(id(branch)), 2)
                self.begun.append(branch)
        while len(self.held) < self.own and (slot := self.slots.take()):
            self.held.append(slot)
        waiting = [branch for branch in self.below if branch.busy and branch not in self.begun]
        self.slots.starved = self.own + len(waiting) > len(self.held)
        self.slots.grow(self.own + sum(branch.busy for branch in self.below))
        for branch in self.begun:
            branch.begin()
            branch.slots.settle()

    def end(self, agents: int) -> None:
        """Ends so many of the own worker agents."""
        for _ in range(min(agents, len(self.held))):
            self.own -= 1
            self.slots.give_back(self.held.pop())

    @property
    def working(self) -> int:
        """How many worker agents work, here and below."""
        return len(self.held) + sum(branch.working for branch in self.begun)

    def settle(self) -> None:
        """Lets messages pass until nothing changes any more."""
        for _ in range(12):
            self.begin()


def test_who_has_only_work_that_waits_returns_all_and_asks_again() -> None:
    deep = Branch(2, 1)
    middle = Branch(2, 0, [deep])
    root = Branch(2, 2, [middle])
    root.settle()
    assert (deep.working, root.working) == (1, 2)
    deep.own = 0
    deep.slots.give_back(deep.held.pop())  # it waits for a provider
    root.settle()
    assert (deep.slots.total, middle.slots.total, len(root.held)) == (0, 0, 2)
    deep.own = 1
    root.settle()
    assert deep.working == 0, "nobody is stopped for it"
    root.end(1)
    root.settle()
    assert (deep.working, root.working) == (1, 2)


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(1, 6), max_size=3)), max_size=4),
    st.lists(st.integers(0, 9), max_size=30),
)
def test_a_tree_never_has_more_at_work_than_its_root_and_always_gets_on(
    total: int, shape: list[tuple[int, list[int]]], ends: list[int]
) -> None:
    branches = [Branch(total, own, [Branch(total, leaf) for leaf in leaves]) for own, leaves in shape]
    root = Branch(total, 2, branches)
    every = [root, *branches, *[leaf for branch in branches for leaf in branch.below]]
    for index in ends:
        root.settle()
        assert root.working <= total
        assert root.working or not root.busy
        every[index % len(every)].end(1)
    while root.busy:
        root.settle()
        assert 0 < root.working <= total
        for branch in every:
            branch.end(9)
