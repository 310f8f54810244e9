"""The ledger's sums, to the last token and dollar."""

from typing import Any

import pytest

from supervision.base import limits
from supervision.budget.amount import Amount
from supervision.budget.ledger import SYNTHESIS_HOLDBACK_TOKENS, Ledger
from supervision.contract.usage import Usage

LEAST, HELD = limits.LEAST_GRANT_TOKENS, SYNTHESIS_HOLDBACK_TOKENS


def used(tokens: int, usd: float | None = 0.0) -> Usage:
    return Usage(model_calls=1, input_tokens=tokens, usd=usd)


def account(ledger: Ledger, kind: str) -> dict[str, Any]:
    listed = ledger.card()[kind]
    assert isinstance(listed, dict)
    return listed


def test_the_card_shows_where_every_token_and_dollar_is() -> None:
    ledger = Ledger(200_000, 10.0)
    ledger.settle_call(0, used(10_000, 1.0))
    ledger.grant("t1", 2)
    assert account(ledger, "tokens") == {
        "total": 200_000, "spent": 10_000, "promised": 85_000, "held_back": HELD, "free": 85_000,
    }  # fmt: skip
    assert account(ledger, "usd") == pytest.approx(
        {"total": 10.0, "spent": 1.0, "promised": 4.0, "held_back": 1.0, "free": 4.0}
    )
    assert ledger.card()["usd_accounted"] is True
    ledger.settle("t1", used(5, None))
    assert (account(ledger, "usd")["promised"], ledger.card()["usd_accounted"]) == (None, False)


def test_a_settled_grant_gives_back_what_was_not_used() -> None:
    ledger = Ledger(200_000, 10.0)
    first, second = ledger.grant("t1", 2), ledger.grant("t2", 2)
    assert first is not None
    assert second is not None
    assert ledger.settle("t1", used(1000, 1.0)) == Amount(tokens=89_000, usd=3.5)
    assert account(ledger, "tokens")["promised"] == second.tokens
    assert account(ledger, "usd")["promised"] == pytest.approx(second.usd)
    assert ledger.settle("t2", used(100_000, 5.0)) == Amount(tokens=0, usd=0.0)
    assert account(ledger, "tokens")["promised"] == account(ledger, "usd")["promised"] == 0


def test_what_had_no_grant_is_spent_all_the_same() -> None:
    ledger = Ledger(None, None)
    assert ledger.settle("t1", used(7, 0.5)) == Amount(tokens=0, usd=0.0)
    assert (ledger.spent.tokens, ledger.spent.usd) == (7, 0.5)


def test_a_grant_without_limits_promises_nothing() -> None:
    ledger = Ledger(None, None)
    assert ledger.grant("t1", 1) == Amount(tokens=None, usd=None)
    assert account(ledger, "tokens") == {"total": None, "spent": 0, "promised": 0, "held_back": None, "free": None}
    assert account(ledger, "usd") == {"total": None, "spent": 0.0, "promised": 0.0, "held_back": None, "free": None}
    assert ledger.top_up("t1", 1, 100) == Amount(tokens=None, usd=None)
    assert account(ledger, "tokens")["promised"] == account(ledger, "usd")["promised"] == 0
    assert ledger.settle("t1", used(5)) == Amount(tokens=None, usd=None)
    assert account(ledger, "tokens")["promised"] == 0


def test_a_grant_in_one_kind_stays_without_a_limit_in_the_other() -> None:
    dollars, tokens = Ledger(None, 10.0), Ledger(200_000, None)
    for ledger in (dollars, tokens):
        ledger.grant("t1", 2)
    assert dollars.top_up("t1", 1, LEAST) == Amount(tokens=None, usd=9.0)
    assert tokens.top_up("t1", 1, LEAST) == Amount(tokens=180_000, usd=None)
    assert account(tokens, "tokens")["promised"] == 180_000
    assert account(dollars, "usd")["promised"] == pytest.approx(9.0)


def test_an_own_call_is_reserved_until_it_is_settled() -> None:
    ledger = Ledger(100_000, None)
    assert ledger.reserve_call(30_000)
    assert not ledger.has_room(50_001)
    assert ledger.has_room(50_000)
    ledger.settle_call(10_000, used(0))
    assert ledger.has_room(60_000)
    assert not ledger.has_room(60_001)
    ledger.settle_call(50_000, used(0))  # more than is reserved
    assert ledger.has_room(80_000)
    assert not ledger.has_room(80_001)


def test_the_synthesis_may_use_what_is_held_back() -> None:
    ledger = Ledger(100_000, None)
    assert not ledger.reserve_call(100_000)
    assert ledger.reserve_call(100_000, synthesis=True)


def test_the_last_grant_is_all_that_is_free() -> None:
    ledger = Ledger(100_000, 10.0)
    assert ledger.last_grant("t1") == Amount(tokens=80_000, usd=9.0)
    assert account(ledger, "tokens")["promised"] == 80_000


def test_totals_may_be_exactly_what_is_spent() -> None:
    ledger = Ledger(100_000, 10.0)
    ledger.settle_call(0, used(500, 0.5))
    ledger.check(500, 0.5)
    with pytest.raises(ValueError, match="tokens"):
        ledger.check(499, None)
    with pytest.raises(ValueError, match="usd"):
        ledger.check(None, 0.4)


def test_totals_are_raised_and_never_lowered() -> None:
    ledger = Ledger(100, 1.0)
    assert ledger.raise_to(Amount(tokens=50, usd=2.0)) == Amount(tokens=100, usd=2.0)
    assert ledger.raise_to(Amount(tokens=150, usd=0.5)) == Amount(tokens=150, usd=2.0)
    assert ledger.raise_to(Amount(tokens=None, usd=3.0)) == Amount(tokens=None, usd=3.0)
    assert Ledger(0, 0.0).raise_to(Amount(tokens=0, usd=0.0)) == Amount(tokens=0, usd=0.0)


def test_without_dollars_no_agent_can_be_paid() -> None:
    ledger = Ledger(None, 1.0)
    assert not ledger.exhausted
    ledger.settle_call(0, used(0, 0.9))  # the rest is held back
    assert ledger.exhausted
    assert not ledger.has_room(0)


def test_with_dollars_for_less_than_the_smallest_grant_no_agent_can_be_paid() -> None:
    ledger = Ledger(None, 10.0)
    ledger.settle_call(0, used(LEAST, 4.5))  # 4.5 is free, and the smallest grant costs as much
    assert not ledger.exhausted
    ledger.settle_call(0, used(0, 0.1))
    assert ledger.exhausted


def test_nothing_is_short_without_a_limit_or_with_room() -> None:
    assert Ledger(None, 1.0).shortfall(10**9) == 0
    assert Ledger(10**9, 1.0).shortfall(10) == 0
