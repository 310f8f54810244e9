"""Sums and differences of usage: one unknown price makes the result unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.usage import Spend, ToolTally, Usage

counts = st.integers(0, 10**9)
usages = st.builds(
    Usage,
    model_calls=counts,
    tool_calls=counts,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    usd=st.none() | st.floats(0, 1e6),
)


@given(st.lists(usages, max_size=6))
def test_a_sum_adds_every_field(parts: list[Usage]) -> None:
    total = sum(parts, start=Usage())
    for name in Usage.model_fields.keys() - {"usd"}:
        assert getattr(total, name) == sum(getattr(part, name) for part in parts)
    assert total.tokens == sum(part.tokens for part in parts)
    known = [part.usd for part in parts if part.usd is not None]
    assert total.usd == (pytest.approx(sum(known)) if len(known) == len(parts) else None)


@given(usages, usages)
def test_a_difference_is_that_of_every_field_and_never_below_zero(one: Usage, other: Usage) -> None:
    rest = one - other
    if one.usd is not None and other.usd is not None:
        assert rest.usd == max(0.0, one.usd - other.usd)
    for name in Usage.model_fields.keys() - {"usd"}:
        assert getattr(rest, name) == max(0, getattr(one, name) - getattr(other, name))
    assert (rest.usd is None) == (one.usd is None or other.usd is None)


def test_tokens_are_counted_and_said() -> None:
    used = Usage(input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000)
    assert (used.tokens, used.prompt_tokens, Usage().cached_share) == (4321, 4301, 0.0)
    assert used.tokens_line() == "4,301 input tokens (7% from the cache), 20 output tokens"
    assert Usage(input_tokens=1500, output_tokens=2).tokens_line() == "1,500 input tokens, 2 output tokens"


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (Spend(role="digger", model="m", usage=Usage(model_calls=1)), "digger with m: 1 call, "),
        (Spend(role="digger", model="m", usage=Usage(model_calls=2)), "digger with m: 2 calls, "),
        (Spend(role="digger", model="", usage=Usage()), "digger: 0 calls, "),
    ],
)
def test_a_row_says_who_spent_on_which_model_how_much(row: Spend, line: str) -> None:
    assert row.line() == f"{line}0 input tokens, 0 output tokens, $0.0000"


def test_calls_of_a_tool_are_counted_with_the_message_of_the_last_failed_one() -> None:
    tally = ToolTally().counted(None).counted("no\nspade").counted("x" * 300).counted(None)
    assert (tally.calls, tally.failures, tally.error) == (4, 2, f"{'x' * 197}…")
    assert ToolTally().counted("") == ToolTally(calls=1, failures=1)
    assert ToolTally(calls=3, failures=2, error="old") + ToolTally(calls=1) == ToolTally(
        calls=4, failures=2, error="old"
    )
