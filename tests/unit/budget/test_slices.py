"""Slices of nested supervisors: raised out of what is free, so that the whole tree stays within its root's budget."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.budget.amount import Amount
from supervision.budget.ledger import SYNTHESIS_HOLDBACK_TOKENS, Ledger
from supervision.budget.time_and_budget import TimeAndBudget
from supervision.contract.request import RunRequest
from supervision.contract.usage import Usage
from tests.unit.shapes import START, Clock


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


def test_without_a_limit_of_tokens_nothing_is_short() -> None:
    ledger = Ledger(None, None)
    assert ledger.shortfall(10**9) == 0
    assert ledger.has_room(10**9)


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


def test_an_unknown_price_lifts_the_dollars_of_a_raised_grant() -> None:
    ledger = Ledger(500_000, 3.0)
    ledger.grant("t1", 4)
    ledger.settle("t2", spent(10, None))
    raised = ledger.top_up("t1", 4, 0)
    assert raised is not None
    assert raised.usd is None


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
