"""The tool loop and the context budget: each has an end, whatever the replies and findings."""

from datetime import timedelta
from math import ceil, log2

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervision.agent.finding_budget import groups, kept_whole, level
from supervision.agent.turn_rules import (
    MODEL_WRITES_PER_SECOND,
    PAUSE_TURNS,
    LoopState,
    Next,
    attempt_time,
    more_room,
    next_step,
)
from supervision.base import limits

REASONS = [
    "end_turn",
    "stop_sequence",
    "tool_use",
    "max_tokens",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "something_new",
]
GOES_ON = {Next.TOOLS, Next.CONTINUE, Next.ASK_AGAIN, Next.NUDGE, Next.INSIST}
EARLY, LAST = LoopState(turn=1, max_turns=3), LoopState(turn=3, max_turns=3, last=True)


@pytest.mark.parametrize(
    ("reason", "text", "calls", "early", "last"),
    [
        ("end_turn", True, 0, Next.FINISH, Next.FINISH),
        ("end_turn", False, 0, Next.NUDGE, Next.INSIST),
        ("stop_sequence", True, 0, Next.FINISH, Next.FINISH),
        ("tool_use", True, 2, Next.TOOLS, Next.FINISH_CUT),
        ("tool_use", False, 2, Next.TOOLS, Next.INSIST),
        ("tool_use", True, 0, Next.ASK_AGAIN, Next.BROKEN),
        ("refusal", True, 1, Next.REFUSED, Next.REFUSED),
        ("pause_turn", True, 0, Next.CONTINUE, Next.FINISH_CUT),
        ("max_tokens", True, 0, Next.ASK_AGAIN, Next.FINISH_CUT),
        ("max_tokens", False, 0, Next.ASK_AGAIN, Next.BROKEN),
        ("max_tokens", False, 1, Next.ASK_AGAIN, Next.BROKEN),
        ("model_context_window_exceeded", True, 0, Next.FINISH_CUT, Next.FINISH_CUT),
        ("model_context_window_exceeded", False, 0, Next.BROKEN, Next.BROKEN),
        ("something_new", True, 0, Next.ASK_AGAIN, Next.BROKEN),
    ],
)
def test_each_stop_reason_has_its_next_step(reason: str, text: bool, calls: int, early: Next, last: Next) -> None:
    assert next_step(reason, text, calls, EARLY) is early
    assert next_step(reason, text, calls, LAST) is last


@given(st.lists(st.tuples(st.sampled_from(REASONS), st.booleans(), st.integers(0, 3)), min_size=30), st.integers(1, 12))
def test_no_sequence_of_replies_takes_more_turns_than_allowed(
    replies: list[tuple[str, bool, int]], max_turns: int
) -> None:
    asked_again = pauses = insisted = 0
    for turn, reply in enumerate(replies, start=1):
        assert turn <= max_turns + 1
        state = LoopState(turn, max_turns, asked_again, pauses, last=turn >= max_turns, insisted=insisted > 0)
        step = next_step(*reply, state)
        if step not in GOES_ON:
            return
        asked_again = asked_again + 1 if step is Next.ASK_AGAIN else 0
        pauses += step is Next.CONTINUE
        insisted += step is Next.INSIST
    pytest.fail("the loop did not end")


def test_a_cut_reply_is_asked_for_again_a_few_times_only() -> None:
    tries = [next_step("max_tokens", True, 0, LoopState(1, 99, asked_again=n)) for n in range(limits.CUT_RETRIES + 1)]
    assert tries == [Next.ASK_AGAIN] * limits.CUT_RETRIES + [Next.FINISH_CUT]


def test_a_cut_reply_that_cannot_grow_is_not_asked_for_again() -> None:
    assert next_step("max_tokens", True, 0, LoopState(1, 99, can_grow=False)) is Next.FINISH_CUT
    assert next_step("something_new", True, 0, LoopState(1, 99, can_grow=False)) is Next.ASK_AGAIN


@pytest.mark.parametrize("reason", ["tool_use", "end_turn", "pause_turn"])
def test_a_last_turn_is_insisted_on_once(reason: str) -> None:
    second = LoopState(turn=4, max_turns=3, last=True, insisted=True)
    assert next_step(reason, False, 1 if reason == "tool_use" else 0, second) is Next.TURN_LIMIT


def test_a_model_that_pauses_too_often_is_broken() -> None:
    assert next_step("pause_turn", True, 0, LoopState(6, 99, pauses=PAUSE_TURNS)) is Next.BROKEN


def test_room_doubles_up_to_what_models_allow() -> None:
    assert more_room(16_000) == 32_000
    assert more_room(limits.MAX_TOKENS_CEILING) == limits.MAX_TOKENS_CEILING


def test_an_attempt_has_the_time_to_write_what_it_may_beside_the_usual_time() -> None:
    tokens = 60 * MODEL_WRITES_PER_SECOND
    assert attempt_time(tokens) == limits.MODEL_CALL_TIMEOUT + timedelta(seconds=60)


WEIGHTS = (0.0, 0.3, 0.5, 1.0)

findings = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 2000), st.sampled_from(WEIGHTS)), max_size=12)


@given(findings, st.integers(0, 20_000))
@example([(1072, 0, 0.0), (1532, 0, 0.0), (1533, 1, 0.0), (1533, 0, 0.0)], 4137)
def test_a_finding_gives_way_only_where_that_is_needed_and_after_all_of_less_weight(
    items: list[tuple[int, int, float]], budget: int
) -> None:
    whole, short, weights = [a for a, _, _ in items], [b for _, b, _ in items], [c for _, _, c in items]
    kept = kept_whole(whole, short, weights, budget)
    taken = [size if stays else brief for size, brief, stays in zip(whole, short, kept, strict=True)]
    if not all(kept):
        gave_way = [n for n, stays in enumerate(kept) if not stays]
        last = max(gave_way, key=lambda n: (weights[n], -whole[n], n))
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
