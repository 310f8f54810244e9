"""A run's deadline and budget: what is left of them, and what a person may set them to."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.budget.amount import Amount
from supervision.budget.ledger import SYNTHESIS_HOLDBACK_TOKENS, Ledger
from supervision.budget.time_and_budget import TimeAndBudget
from supervision.contract.ceilings import Ceilings
from supervision.contract.request import RunRequest
from supervision.contract.updates import NewBudget
from supervision.contract.usage import Usage
from tests.unit.shapes import START, Clock

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def a_run(clock: Clock | None = None, grant: Amount | None = None, **fields: object) -> TimeAndBudget:
    request = RunRequest.model_validate({"goal": "g", "deadline": HOUR, **fields})
    return TimeAndBudget(request, clock or Clock(), START, grant)


def test_work_ends_before_the_deadline_so_that_there_is_time_for_the_answer() -> None:
    assert a_run().deadline_at == START + HOUR
    assert a_run().work_until == START + HOUR - limits.SYNTHESIS_RESERVE
    short = a_run(deadline=100 * SECOND)
    assert short.work_until == START + 100 * SECOND * (1 - limits.SYNTHESIS_RESERVE_SHARE)
    assert short.latest_deadline_at == START + limits.MAX_DEADLINE


def test_a_stop_ends_the_time_for_work_alone_whatever_the_deadline_becomes() -> None:
    run = a_run()
    assert run.stopped_because == ""
    run.stop("its history is full")
    assert (run.time_left, run.stopped_because) == (False, "its history is full")
    assert (run.deadline_at, run.closing_time) == (START + HOUR, limits.CHILD_CLOSE_WAIT)
    run.extend(None, 2 * HOUR)
    run.restart_clock()
    assert not run.time_left


@pytest.mark.parametrize(
    ("left", "closing"), [(HOUR, limits.CHILD_CLOSE_WAIT), (20 * SECOND, 10 * SECOND), (SECOND, limits.LEAST_CALL_TIME)]
)
def test_children_get_a_part_of_what_is_left_to_stop(left: timedelta, closing: timedelta) -> None:
    clock = Clock()
    run = a_run(clock)
    clock.at = run.deadline_at - left
    assert run.closing_time == closing


def test_a_deadline_must_be_ahead() -> None:
    clock = Clock()
    run = a_run(clock)
    clock.tick(60)
    for passed in (59 * SECOND, 60 * SECOND):
        with pytest.raises(ValueError, match="passed already"):
            run.check(None, passed)
    run.check(None, 61 * SECOND)


def test_a_budget_must_cover_what_is_spent_and_stay_below_the_ceilings() -> None:
    run = a_run()
    run.ledger.settle_call(0, Usage(input_tokens=500, usd=0.5))
    with pytest.raises(ValueError, match=r"budget\.tokens must be at least 500"):
        run.check(NewBudget(tokens=499), None)
    run.check(NewBudget(tokens=500, usd=0.5), None)
    run.keep_within(Ceilings(tokens=1000), RunRequest(goal="g"))
    with pytest.raises(ValueError, match="ceiling"):
        run.check(NewBudget(tokens=1001), None)
    assert (run.budget.tokens, run.card().budget_tokens, run.ledger.card()["tokens"]) == (
        1000, 1000, {"total": 1000, "spent": 500, "promised": 0, "held_back": 500, "free": 0},
    )  # fmt: skip


def spent(tokens: int, usd: float | None = 0.0) -> Usage:
    return Usage(model_calls=1, input_tokens=tokens, usd=usd)


@given(total=st.integers(0, 2_000_000), used=st.integers(0, 400_000), tokens=st.integers(1, 200_000))
def test_a_total_that_grew_by_the_shortfall_has_room_and_hardly_more(total: int, used: int, tokens: int) -> None:
    ledger = Ledger(total, None)
    ledger.settle_call(0, spent(used))
    shortfall = ledger.shortfall(tokens)
    assert ledger.has_room(tokens) == (shortfall == 0) or shortfall <= 2
    ledger.raise_to(Amount(tokens=total + shortfall))
    assert ledger.has_room(tokens)
    if shortfall > 2:
        smaller = Ledger(total + shortfall - 3, None)
        smaller.settle_call(0, spent(used))
        assert not smaller.has_room(tokens)


@given(total=st.integers(50_000, 1_000_000), share=st.integers(1, 20), least=st.integers(0, 500_000))
def test_a_raised_grant_stays_within_what_is_free(total: int, share: int, least: int) -> None:
    ledger = Ledger(total, 2.0)
    first = ledger.grant("t1", 20)
    assert first is not None
    free = ledger.free
    raised = ledger.top_up("t1", share, least)
    assert raised is not None
    assert None not in (first.tokens, raised.tokens, free.tokens, free.usd, first.usd, raised.usd)
    grown = (raised.tokens or 0) - (first.tokens or 0)
    assert grown == min(free.tokens or 0, max((free.tokens or 0) // share, least))
    assert (raised.usd or 0) - (first.usd or 0) == pytest.approx((free.usd or 0) / share)
    assert ledger.open_grants == 1
    ledger.settle("t1", spent(0))
    assert ledger.free.tokens == total - max(SYNTHESIS_HOLDBACK_TOKENS, -(-total // 10))


def test_only_an_open_grant_is_raised_and_only_while_something_is_free() -> None:
    ledger = Ledger(50_000, None)
    assert ledger.top_up("t1", 1, 0) is None
    assert ledger.grant("t1", 2) == Amount(tokens=15_000)
    assert ledger.top_up("t1", 2, 1_000) == Amount(tokens=22_500)
    assert ledger.top_up("t1", 2, 90_000) == Amount(tokens=30_000)
    assert ledger.top_up("t1", 1, 1_000) is None


def test_a_slice_is_raised_never_lowered_and_its_deadline_set() -> None:
    request = RunRequest(goal="g", deadline=timedelta(minutes=5))
    budget = TimeAndBudget(request, Clock(), START, Amount(tokens=9_000, usd=1.0))
    budget.ledger.settle_call(0, spent(12_000))  # calls under way may pass the total
    budget.set_slice(Amount(tokens=8_000, usd=0.5), START + timedelta(hours=1))
    assert (budget.budget.tokens, budget.budget.usd) == (9_000, 1.0)
    assert budget.deadline_at == START + timedelta(hours=1)
    budget.set_slice(Amount(tokens=30_000, usd=None), START + timedelta(minutes=2))
    assert (budget.budget.tokens, budget.budget.usd) == (30_000, None)
    assert budget.deadline == timedelta(minutes=2)
