"""The rules of the tool loop: the step after a reply, by its stop reason."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import FINISH_TOOL

PAUSE_TURNS = 5  # `pause_turn` rounds of one call
MODEL_WRITES_PER_SECOND = 30  # tokens of a slow model; a dead stream is ended long before

# The stop reason of a reply for which there was no more room.
WINDOW_FULL = "model_context_window_exceeded"
CUT = ("max_tokens", WINDOW_FULL)  # those of a reply that is not whole


class Next(Enum):
    """The next step of the tool loop."""

    FINISH = "finish"  # the text is the finding
    FINISH_CUT = "finish_cut"  # the text is the finding, but it is not whole
    TOOLS = "tools"  # run the tool calls, then the next turn
    CONTINUE = "continue"  # the model paused: call again with its own words appended
    ASK_AGAIN = "ask_again"  # drop this reply and ask the same again, with more room if it was cut
    NUDGE = "nudge"  # it said nothing: ask for the finding
    INSIST = "insist"  # nor did it in its last turn: ask once more
    REFUSED = "refused"
    TURN_LIMIT = "turn_limit"
    BROKEN = "broken"  # no usable reply after several tries


@dataclass
class LoopState:
    """The state of the tool loop.

    `turn` is the number of the reply just received, from 1. In the `last` turn, by the limit of
    turns or by budget, no tools may be called; `insisted` is True if the model called some in two
    of these. `can_grow` is True if a cut reply may get more room.
    """

    turn: int
    max_turns: int
    asked_again: int = 0
    pauses: int = 0
    last: bool = False
    insisted: bool = False
    can_grow: bool = True

    def begin_turn(self, *, last: bool) -> None:
        """Begins a turn."""
        self.last = last

    def hear_reply(self, *, turn: int, pauses: int, can_grow: bool) -> None:
        """Records the counts with which a reply came."""
        self.turn = turn
        self.pauses = pauses
        self.can_grow = can_grow

    def ask_again(self) -> None:
        """Drops a reply, whose turn is made again."""
        self.asked_again += 1

    def accept_reply(self) -> None:
        """Accepts a reply: the next one may be dropped as often as this one."""
        self.asked_again = 0

    def insist(self) -> None:
        """Insists on a conclusion, which happens once."""
        self.insisted = True


_FOLLOWING = {
    "end_turn": Next.NUDGE,
    "stop_sequence": Next.NUDGE,
    FINISH_TOOL: Next.NUDGE,
    "tool_use": Next.TOOLS,
    "pause_turn": Next.CONTINUE,
}
"""What follows a reply that is no finding, by its stop reason."""


def next_step(stop_reason: str, has_text: bool, tool_calls: int, state: LoopState) -> Next:
    """Returns the step after a reply.

    Tool calls of a cut reply are never run, because their arguments may be cut too.
    """
    following, cut_or_broken = (
        _FOLLOWING.get(stop_reason),
        Next.FINISH_CUT if has_text else Next.BROKEN,
    )
    if stop_reason == "refusal":
        return Next.REFUSED
    if stop_reason == WINDOW_FULL:
        return cut_or_broken
    if following is Next.NUDGE and has_text:
        return Next.FINISH
    if following is Next.CONTINUE and state.pauses >= PAUSE_TURNS:
        return Next.BROKEN
    if following and (tool_calls or following is not Next.TOOLS):
        if not state.last:
            return following
        # What it wrote beside the reply that was none, or one more call.
        if has_text:
            return Next.FINISH_CUT
        return Next.TURN_LIMIT if state.insisted else Next.INSIST
    grows = stop_reason != "max_tokens" or state.can_grow
    if grows and state.asked_again < limits.CUT_RETRIES and state.turn < state.max_turns:
        return Next.ASK_AGAIN
    return cut_or_broken if stop_reason == "max_tokens" else Next.BROKEN


def more_room(max_tokens: int, most: int | None = None) -> int:
    """Returns the token limit for repeating a call whose reply was cut, at most `most`."""
    return min(max_tokens * 2, most or limits.MAX_TOKENS_CEILING)


def attempt_time(max_tokens: int) -> timedelta:
    """Returns the time limit of an attempt of a call that may write `max_tokens`."""
    return limits.MODEL_CALL_TIMEOUT + timedelta(seconds=max_tokens / MODEL_WRITES_PER_SECOND)
