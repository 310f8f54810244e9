"""Sums of what was consumed: order does not matter, and one unknown price makes the sum unknown."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.usage import Usage

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


def test_the_tokens_are_the_sum_of_all_kinds() -> None:
    assert Usage(input_tokens=1, output_tokens=20, cache_read_tokens=300, cache_write_tokens=4000).tokens == 4321
