"""The context budget: never passed, fair among equals, and every reduction ends."""

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.agent.finding_budget import groups, kept_whole, level

WEIGHTS = (0.0, 0.3, 0.5, 1.0)

findings = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2000), st.sampled_from(WEIGHTS)), max_size=12)


@given(findings, st.integers(0, 20_000))
def test_a_finding_gives_way_only_where_that_is_needed_and_after_all_of_less_weight(
    items: list[tuple[int, int, float]], budget: int
) -> None:
    whole, short, weights = [a for a, _, _ in items], [b for _, b, _ in items], [c for _, _, c in items]
    kept = kept_whole(whole, short, weights, budget)
    taken = [size if stays else brief for size, brief, stays in zip(whole, short, kept, strict=True)]
    if not all(kept):
        gave_way = [n for n, stays in enumerate(kept) if not stays]
        last = max(gave_way, key=lambda n: (weights[n], -whole[n]))
        assert sum(taken) - short[last] + whole[last] > budget
        for n, stays in enumerate(kept):
            assert not stays or short[n] >= whole[n] or (weights[n], -whole[n]) >= (weights[last], -whole[last])
    if sum(taken) > budget:
        assert not [n for n, stays in enumerate(kept) if stays and short[n] < whole[n]]


@pytest.mark.parametrize(
    ("whole", "weights", "budget", "expected"),
    [
        ([5000, 5000], [0.9, 0.1], 10_000, [True, True]),
        ([5000, 5000], [0.9, 0.1], 9999, [True, False]),
        ([5000, 5000], [0.9, 0.1], 6000, [True, False]),
        ([5000, 5000], [0.9, 0.1], 5999, [False, False]),
        ([5000, 6000, 7000], [0.5] * 3, 12_000, [True, True, False]),
        ([5000, 900], [0.9, 0.1], 100, [False, True]),  # a text shorter than its summary stays
        ([], [], 100, []),
    ],
)
def test_findings_give_way_least_weight_first(
    whole: list[int], weights: list[float], budget: int, expected: list[bool]
) -> None:
    assert kept_whole(whole, [1000] * len(whole), weights, budget) == expected


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        kept_whole([1, 2], [1, 2], [1.0], 10)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=12), st.integers(0, 20_000))
def test_only_the_larger_are_cut_and_to_one_length_that_uses_the_room(sizes: list[int], budget: int) -> None:
    most = level(sizes, budget)
    taken = sum(min(size, most) for size in sizes)
    assert taken <= budget
    assert most >= max(sizes) or budget - taken < len(sizes)


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
