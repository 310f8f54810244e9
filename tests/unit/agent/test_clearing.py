"""Tool outputs give way to previews: rarely, the oldest first, by much, and only where they must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision import limits
from supervision.agent.clearing import OutputSize, PromptSize, Room, outputs_to_clear

ROOM = Room.of(100_000)
sizes = st.lists(st.integers(0, 30_000).map(lambda n: OutputSize(float(n), min(float(n), 150.0))), max_size=30)


@st.composite
def prompts(draw: st.DrawFn) -> PromptSize:
    outputs = draw(sizes)
    cleared = draw(st.integers(0, len(outputs)))
    new = draw(st.integers(0, len(outputs) - cleared))
    rest = draw(st.floats(0, 120_000))
    return PromptSize(rest, outputs, cleared, new, thinking=draw(st.floats(0, rest)))


@given(prompts())
def test_a_prompt_with_room_left_stays_as_it_is(size: PromptSize) -> None:
    if size.total() <= ROOM.usual:
        assert outputs_to_clear(size, ROOM) == size.cleared


@given(prompts())
def test_what_was_cleared_stays_cleared(size: PromptSize) -> None:
    assert size.cleared <= outputs_to_clear(size, ROOM) <= len(size.outputs)


@given(prompts())
def test_a_clearing_makes_the_prompt_fit_or_leaves_no_output_whole(size: PromptSize) -> None:
    chosen = outputs_to_clear(size, ROOM)
    if chosen > size.cleared:
        assert size.total(chosen) <= ROOM.usual or chosen == len(size.outputs)


@given(prompts())
def test_a_full_window_is_always_cleared_if_anything_is_left(size: PromptSize) -> None:
    if size.total() > ROOM.window and size.cleared < len(size.outputs):
        assert outputs_to_clear(size, ROOM) > size.cleared


@given(prompts())
def test_outputs_not_yet_seen_stay_whole_where_there_is_room_without_the_older_ones(size: PromptSize) -> None:
    seen = len(size.outputs) - size.new
    if seen > size.cleared and size.total(seen) <= ROOM.usual:
        assert outputs_to_clear(size, ROOM) <= seen


@given(prompts(), st.floats(0.1, 3.0))
def test_a_prompt_counted_otherwise_is_judged_by_the_count(size: PromptSize, factor: float) -> None:
    assert size.scaled(factor).total() == pytest.approx(size.total() * factor)
    assert size.at(len(size.outputs)).total() == pytest.approx(size.total(len(size.outputs)))


def test_a_conversation_is_cleared_in_few_large_steps() -> None:
    cleared, steps = 0, []
    for turn in range(1, 201):
        outputs = [OutputSize(5_000.0, 150.0)] * turn
        now = outputs_to_clear(PromptSize(3_000.0, outputs, cleared, new=1), ROOM)
        if now > cleared:
            steps.append(turn)
            least = 3_000 + 150 * turn + 5_000
            assert PromptSize(3_000.0, outputs, now).total() <= max(ROOM.usual * limits.CLEARED_SHARE, least)
        cleared = now
    assert 15 <= len(steps) <= 25
    assert min(later - earlier for earlier, later in zip(steps, steps[1:], strict=False)) >= 6


def test_a_small_gain_waits_until_the_window_is_full() -> None:
    outputs = [OutputSize(2_000.0, 150.0), OutputSize(1_000.0, 150.0)]
    assert outputs_to_clear(PromptSize(81_000.0, outputs, new=1), ROOM) == 0
    assert outputs_to_clear(PromptSize(98_000.0, outputs, new=1), ROOM) == 2


def test_prompts_stay_below_the_length_from_which_they_are_dearer() -> None:
    room = Room.of(1_000_000, dearer_from=100_000)
    assert (room.window, room.usual) == (1_000_000, 95_000)
    outputs = [OutputSize(5_000.0, 150.0)] * 19
    assert outputs_to_clear(PromptSize(3_000.0, outputs, new=1), room) > 0
    assert outputs_to_clear(PromptSize(3_000.0, outputs, new=1), Room.of(1_000_000)) == 0


# --- sizes and their boundaries -------------------------------------------------------------------

WHOLE, PREVIEW = 10_000.0, 150.0


def prompt(rest: float, *, outputs: int, cleared: int = 0, new: int = 0, thinking: float = 0) -> PromptSize:
    return PromptSize(rest, [OutputSize(WHOLE, PREVIEW)] * outputs, cleared, new, thinking)


def test_a_prompt_is_the_sum_of_its_parts() -> None:
    assert prompt(1_000, outputs=3, cleared=1, thinking=600).total() == 1_000 + PREVIEW + 2 * WHOLE


def test_thinking_goes_with_the_next_clearing_and_only_once() -> None:
    size = prompt(1_000, outputs=3, cleared=1, thinking=600)
    assert size.total(1) == size.total()
    assert size.total(2) == 400 + 2 * PREVIEW + WHOLE
    cleared = size.at(2)
    assert (cleared.total(), cleared.thinking) == (size.total(2), 0)
    assert cleared.total(3) == 400 + 3 * PREVIEW
    assert size.at(1).thinking == 600


def test_what_was_estimated_wrongly_is_wrong_in_all_parts() -> None:
    scaled = prompt(1_000, outputs=3, thinking=600).scaled(2)
    assert (scaled.rest, scaled.thinking, scaled.total(1)) == (2_000, 1_200, 2 * (400 + PREVIEW + 2 * WHOLE))


def test_a_window_keeps_a_share_for_the_reply() -> None:
    assert Room.of(100_000).usual == pytest.approx(100_000 * (1 - limits.REPLY_SHARE))


def test_a_prompt_of_exactly_its_room_stays_as_it_is() -> None:
    room = Room(200_000, 50_000)
    assert outputs_to_clear(prompt(0, outputs=5), room) == 0
    assert outputs_to_clear(prompt(1, outputs=5), room) > 0


def test_a_clearing_leaves_a_third_of_the_room_in_use_or_just_less() -> None:
    size, room = PromptSize(0, [OutputSize(WHOLE, 0.0)] * 9), Room(200_000, 60_000)
    chosen, third = outputs_to_clear(size, room), 60_000 * limits.CLEARED_SHARE
    assert size.total(chosen) <= third < size.total(chosen - 1)


def test_outputs_not_yet_seen_stay_where_they_just_fit_without_the_older_ones() -> None:
    """Two new outputs and the previews of two older ones fill the room to the last token: none of the new ones goes."""
    rest = 1_000.0
    just = rest + 2 * PREVIEW + 2 * WHOLE
    assert outputs_to_clear(prompt(rest, outputs=4, new=2), Room(200_000, just)) == 2
    assert outputs_to_clear(prompt(rest, outputs=4, new=2), Room(200_000, just - 1)) == 3


def test_no_unseen_output_goes_beyond_what_makes_the_prompt_fit() -> None:
    just = 1_000 + 3 * PREVIEW + WHOLE
    assert outputs_to_clear(prompt(1_000, outputs=4, new=4), Room(200_000, just)) == 3


def gaining(gain: float) -> PromptSize:
    """A prompt above its room of 100,000 in which one output can give way, for so many tokens."""
    return PromptSize(100_001.0, [OutputSize(gain + PREVIEW, PREVIEW)])


def test_a_clearing_is_worth_a_certain_share_of_the_room() -> None:
    room = Room(1_000_000, 100_000)
    least = 100_000 * limits.CLEARED_LEAST_SHARE
    assert outputs_to_clear(gaining(least), room) == 1
    assert outputs_to_clear(gaining(least - 1), room) == 0


def test_a_window_is_full_when_there_is_no_room_for_another_output() -> None:
    small = gaining(100.0)
    full = int(small.total()) + limits.LEAST_OUTPUT_TOKENS
    assert outputs_to_clear(small, Room(full - 1, 100_000)) == 1
    assert outputs_to_clear(small, Room(full, 100_000)) == 0


def test_a_full_window_gains_nothing_by_outputs_as_short_as_their_previews() -> None:
    assert outputs_to_clear(gaining(0.0), Room(100_000, 90_000)) == 0
    assert outputs_to_clear(gaining(1.0), Room(100_000, 90_000)) == 1
