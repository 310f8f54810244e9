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
