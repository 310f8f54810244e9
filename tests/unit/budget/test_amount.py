"""Estimates of calls, and the last cent of a grant."""

import pytest

from supervision.base import limits
from supervision.budget.amount import USUAL_REPLY_TOKENS, Amount, call_estimate, last_call, may_call, token_price
from supervision.budget.ledger import plan_estimate
from supervision.contract.usage import Usage

USED = Usage(model_calls=1, input_tokens=100, usd=1.0)


def test_a_call_is_estimated_by_its_prompt_and_a_usual_reply() -> None:
    assert call_estimate(0) == USUAL_REPLY_TOKENS
    assert call_estimate(7000) == 2000 + USUAL_REPLY_TOKENS
    assert call_estimate(1) == 1 + USUAL_REPLY_TOKENS
    assert plan_estimate(7000) == call_estimate(7000 + limits.PLAN_PROMPT_BYTES)


def test_the_price_of_a_token_is_the_mean_so_far() -> None:
    assert token_price(USED) == pytest.approx(0.01)
    assert token_price(Usage()) == 0.0
    assert token_price(Usage(input_tokens=5, usd=None)) == 0.0


def test_a_call_that_takes_exactly_what_is_left_may_be_made() -> None:
    assert may_call(Amount(tokens=150), USED, 50)
    assert not may_call(Amount(tokens=149), USED, 50)
    assert may_call(Amount(usd=1.5), USED, 50)
    assert not may_call(Amount(usd=1.4), USED, 50)


def test_the_last_call_is_the_one_after_which_no_other_fits() -> None:
    assert not last_call(Amount(tokens=200), USED, 50)
    assert last_call(Amount(tokens=199), USED, 50)
    assert last_call(Amount(tokens=99), Usage(), 50)
    assert not last_call(Amount(tokens=100), Usage(), 50)
