"""The tool loop: each stop reason has one next step, and no sequence of replies goes on for ever."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
