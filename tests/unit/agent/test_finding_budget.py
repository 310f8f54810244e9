"""The context budget: never passed, fair among equals, and every reduction ends."""

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.agent.finding_budget import FINDING_SUMMARY_CHARS, allot, groups

SUMMARY = FINDING_SUMMARY_CHARS

WEIGHTS = (0.0, 0.3, 0.5, 1.0)

findings = st.lists(st.tuples(st.integers(0, 5 * SUMMARY), st.sampled_from(WEIGHTS)), max_size=12)
budgets = st.integers(0, 20 * SUMMARY)


def allotted(items: list[tuple[int, float]], budget: int) -> list[int]:
    return allot([size for size, _ in items], [weight for _, weight in items], budget)


@given(findings, budgets)
def test_the_budget_is_never_passed_and_well_used(items: list[tuple[int, float]], budget: int) -> None:
    given_out = allotted(items, budget)
    assert sum(given_out) <= budget
    assert all(0 <= got <= size for got, (size, _) in zip(given_out, items, strict=True))
    cut = [got for got, (size, _) in zip(given_out, items, strict=True) if got < size]
    assert bool(cut) == (sum(size for size, _ in items) > budget)
    if cut:
        assert budget - sum(given_out) < len(items) * len(WEIGHTS)  # some characters for each that was cut


@given(findings, budgets, st.data())
def test_the_order_of_findings_makes_no_difference(
    items: list[tuple[int, float]], budget: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(items))))
    shuffled = allotted([items[n] for n in order], budget)
    assert [shuffled[order.index(n)] for n in range(len(items))] == allotted(items, budget)


@given(findings, budgets)
def test_a_finding_is_cut_only_when_all_of_less_weight_are_summaries(
    items: list[tuple[int, float]], budget: int
) -> None:
    given_out = allotted(items, budget)
    cut = [weight for got, (size, weight) in zip(given_out, items, strict=True) if got < size]
    for got, (_, weight) in zip(given_out, items, strict=True):
        if any(weight < other for other in cut):
            assert got <= SUMMARY


@given(findings, budgets)
def test_no_summary_is_cut_while_one_of_less_weight_is_kept(items: list[tuple[int, float]], budget: int) -> None:
    given_out = allotted(items, budget)
    short = [weight for got, (size, weight) in zip(given_out, items, strict=True) if got < min(size, SUMMARY)]
    for got, (_, weight) in zip(given_out, items, strict=True):
        if any(weight < other for other in short):
            assert got == 0


@given(findings, budgets)
def test_among_equals_only_the_larger_are_cut_and_to_one_length(items: list[tuple[int, float]], budget: int) -> None:
    given_out = allotted(items, budget)
    for kind in WEIGHTS:
        pairs = [(got, size) for got, (size, weight) in zip(given_out, items, strict=True) if weight == kind]
        lengths = {got for got, size in pairs if got < size}
        assert len(lengths) <= 1
        for length in lengths:
            assert all(got == size for got, size in pairs if size <= length)


@pytest.mark.parametrize(
    ("sizes", "weights", "budget", "expected"),
    [
        ([100, 200], [0.5, 0.5], 300, [100, 200]),
        ([100, 200], [0.5, 0.5], 250, [100, 150]),
        ([5000, 5000], [0.9, 0.1], 8000, [5000, 3000]),
        ([5000, 5000], [0.9, 0.1], 6000, [4800, 1200]),
        ([5000, 5000, 5000], [0.9, 0.1, 0.1], 8000, [5000, 1500, 1500]),
        ([5000, 5000, 5000], [0.9, 0.4, 0.1], 8000, [5000, 1800, 1200]),
        ([5000, 5000, 5000], [0.9, 0.4, 0.1], 2000, [1200, 800, 0]),
        ([5000, 5000, 5000], [0.9, 0.9, 0.9], 3000, [1000, 1000, 1000]),
        ([5000], [0.5], 0, [0]),
        ([], [], 100, []),
    ],
)
def test_findings_are_cut_least_weight_first(
    sizes: list[int], weights: list[float], budget: int, expected: list[int]
) -> None:
    assert allot(sizes, weights, budget) == expected


@given(st.lists(st.integers(0, 100), max_size=40), st.integers(0, 300))
def test_groups_are_consecutive_and_fit_unless_they_are_pairs(sizes: list[int], budget: int) -> None:
    found = groups(sizes, budget)
    assert [index for group in found for index in group] == list(range(len(sizes)))
    assert all(len(group) >= 2 for group in found[:-1])
    assert all(len(group) <= 2 or sum(sizes[n] for n in group) <= budget for group in found)
    for group, following in zip(found, found[1:], strict=False):
        assert sum(sizes[n] for n in group) + sizes[following[0]] > budget


@given(st.lists(st.integers(0, 100), min_size=2, max_size=200), st.integers(0, 300))
def test_condensing_group_by_group_ends_after_a_logarithm_of_rounds(sizes: list[int], budget: int) -> None:
    """Even when digests are as long as all they were made of."""
    rounds, texts = 0, sizes
    while len(texts) > 1:
        found = groups(texts, budget)
        texts = [sum(texts[n] for n in group) for group in found]
        rounds += 1
    assert rounds <= ceil(log2(len(sizes)))


def test_findings_that_fit_together_are_one_group() -> None:
    assert groups([10, 20, 30], 60) == [[0, 1, 2]]
    assert groups([10, 20, 31], 60) == [[0, 1], [2]]
    assert groups([90, 90, 5, 5], 100) == [[0, 1], [2, 3]]
    assert groups([1], 0) == [[0]]
    assert groups([], 100) == []


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        allot([1, 2], [1.0], 10)


def test_summaries_that_just_fit_are_not_cut() -> None:
    assert allot([5000, SUMMARY + 1], [1.0, 0.5], 5000 + SUMMARY) == [5000, SUMMARY]


def test_findings_that_just_fit_stay_whole() -> None:
    assert allot([100, 100, 300], [1.0] * 3, 500) == [100, 100, 300]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 40))
def test_the_first_group_begins_with_the_first_text(sizes: list[int], budget: int) -> None:
    assert groups(sizes, budget)[0][0] == 0
