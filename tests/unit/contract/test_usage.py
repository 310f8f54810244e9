"""Sums and rests of what was consumed: order does not matter, and one unknown price makes the sum unknown."""

from itertools import permutations

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


def test_an_unknown_cost_is_never_lost_in_any_order() -> None:
    for parts in permutations([Usage(usd=1.0), Usage(usd=None), Usage(usd=2.0)]):
        assert sum(parts, start=Usage()).usd is None


def test_a_sum_leaves_its_parts_alone() -> None:
    one = total = Usage(model_calls=1)
    total += Usage(model_calls=2)
    assert (one.model_calls, total.model_calls) == (1, 3)


@given(usages, usages)
def test_a_rest_is_what_a_sum_adds(one: Usage, other: Usage) -> None:
    rest = one + other - other
    assert rest.model_copy(update={"usd": None}) == one.model_copy(update={"usd": None})
    known = one.usd is not None and other.usd is not None
    assert rest.usd == (pytest.approx(one.usd, abs=1e-6) if known else None)


@given(usages, usages)
def test_nothing_of_a_rest_is_below_zero(one: Usage, other: Usage) -> None:
    rest = one - other
    for name in Usage.model_fields.keys() - {"usd"}:
        assert getattr(rest, name) == max(0, getattr(one, name) - getattr(other, name))
    assert (rest.usd is None) == (one.usd is None or other.usd is None)
    assert rest.usd is None or rest.usd >= 0


def test_a_rest_has_no_cost_below_zero_and_the_difference_above_it() -> None:
    assert (Usage(usd=1.0) - Usage(usd=3.0)).usd == 0.0
    assert (Usage(usd=3.0) - Usage(usd=1.0)).usd == 2.0


def test_the_tokens_are_the_sum_of_all_kinds() -> None:
    assert Usage(input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000).tokens == 4321


# --- in words -------------------------------------------------------------------------------------


def test_tokens_in_words_are_what_was_read_and_what_was_written() -> None:
    assert Usage(input_tokens=1500, output_tokens=2).tokens_line() == "1,500 input tokens, 2 output tokens"


def test_the_part_of_the_prompts_that_came_from_the_cache_is_said() -> None:
    used = Usage(input_tokens=1, cache_read_tokens=3, cache_write_tokens=8, output_tokens=5)
    assert used.cached_share == 0.25
    assert used.tokens_line() == "12 input tokens (25% from the cache), 5 output tokens"


def test_of_nothing_no_part_came_from_the_cache() -> None:
    assert Usage().cached_share == 0.0


@pytest.mark.parametrize(
    ("row", "beginning"),
    [
        (Spend(role="digger", model="m", usage=Usage(model_calls=1)), "digger with m: 1 call, "),
        (Spend(role="digger", model="m", usage=Usage(model_calls=2)), "digger with m: 2 calls, "),
        (Spend(role="digger", model="", usage=Usage()), "digger: 0 calls, "),
    ],
)
def test_a_row_says_who_spent_on_which_model_how_much(row: Spend, beginning: str) -> None:
    assert row.line().startswith(beginning)
    assert row.line().endswith("$0.0000")


# --- tools ----------------------------------------------------------------------------------------


def test_calls_of_a_tool_are_counted_with_what_the_last_failed_one_said() -> None:
    tally = ToolTally().counted(None).counted("no\nspade").counted("x" * 300).counted(None)
    assert (tally.calls, tally.failures, tally.error) == (4, 2, f"{'x' * 197}…")


def test_an_empty_error_is_an_error() -> None:
    assert ToolTally().counted("") == ToolTally(calls=1, failures=1)


def test_tallies_add_up_and_the_newer_error_stands() -> None:
    older, newer = ToolTally(calls=3, failures=2, error="old"), ToolTally(calls=4, failures=1, error="new")
    assert older + newer == ToolTally(calls=7, failures=3, error="new")
    assert older + ToolTally(calls=1) == ToolTally(calls=4, failures=2, error="old")
