"""How many worker agents may work at a time: never more, never fewer than could, and in order of asking."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.team import RoleCard
from supervision.run.slots import Slot, Slots

WIDE = RoleCard(name="wide", description="Works.", model="m")
NARROW = RoleCard(name="narrow", description="Works alone.", model="m", max_parallel=1)


def slots(total: int = 2) -> Slots:
    return Slots(lambda: total)


def test_a_slot_is_there_or_not() -> None:
    two = slots()
    first, second = two.take(WIDE), two.take(NARROW)
    assert first
    assert second
    assert (first.held, second.held) == (True, True)
    assert (two.take(WIDE), two.full, two.held) == (None, True, 2)
    two.give_back(first)
    assert (two.full, two.has_room(WIDE), two.has_room(NARROW)) == (False, True, False)


def test_a_role_has_no_more_than_its_own() -> None:
    two = slots()
    assert two.take(NARROW)
    assert two.take(NARROW) is None
    assert two.take(WIDE)


def test_slots_are_given_in_the_order_of_asking() -> None:
    one = slots(1)
    holder = one.take(WIDE)
    first, second = Slot(WIDE), Slot(WIDE)
    one.ask(first)
    one.ask(second)
    assert holder
    assert (first.held, second.held) == (False, False)
    one.give_back(holder)
    assert (first.held, second.held, one.take(WIDE)) == (True, False, None)


def test_who_waits_for_a_full_role_blocks_nobody_else() -> None:
    two = slots()
    assert two.take(NARROW)
    waiting = Slot(NARROW)
    two.ask(waiting)
    assert two.take(WIDE)
    assert not waiting.held


def test_a_slot_moves_to_a_role_with_room_even_when_the_run_has_none() -> None:
    one = slots(1)
    slot = one.take(WIDE)
    assert slot
    assert one.move(slot, NARROW)
    assert (slot.role, one.held) == (NARROW, 1)
    two = slots()
    other = two.take(WIDE)
    assert two.take(NARROW)
    assert other
    assert not two.move(other, NARROW)
    assert other.role is WIDE


def test_giving_back_twice_or_without_a_slot_changes_nothing() -> None:
    two = slots()
    slot = two.take(WIDE)
    assert slot
    two.give_back(slot)
    two.give_back(slot)
    two.give_back(Slot(WIDE))
    assert two.held == 0


def test_a_wait_that_is_given_up_gets_no_slot() -> None:
    one = slots(1)
    holder, waiting = one.take(WIDE), Slot(WIDE)
    one.ask(waiting)
    one.give_back(waiting)
    assert holder
    one.give_back(holder)
    assert (waiting.held, one.held) == (False, 0)


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
