"""When tool outputs of a conversation give way to previews, and how many: a rule over sizes in tokens.

After a clearing the provider's cache holds nothing of the conversation, so there are few of them, and each frees much:
the oldest outputs go, until a third of the room is in use. Between two clearings a conversation only grows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from supervision import limits


@dataclass(frozen=True)
class OutputSize:
    """The tokens of one tool output: as it is shown first, and as a preview."""

    shown: float
    preview: float


@dataclass(frozen=True)
class PromptSize:
    """The tokens of a prompt in parts.

    `outputs` are all tool outputs, the oldest first, of which `cleared` are previews already, and of which the model
    has not seen the last `new` ones yet. `rest` is everything else; `thinking` is the part of it that goes with the
    next clearing.
    """

    rest: float
    outputs: Sequence[OutputSize]
    cleared: int = 0
    new: int = 0
    thinking: float = 0

    def total(self, cleared: int | None = None) -> float:
        """Returns the tokens of the prompt with the first `cleared` outputs as previews; None is as they are now."""
        count = self.cleared if cleared is None else cleared
        thinking = self.thinking if count > self.cleared else 0
        previews = sum(output.preview for output in self.outputs[:count])
        return self.rest - thinking + previews + sum(output.shown for output in self.outputs[count:])

    def at(self, cleared: int) -> "PromptSize":
        """Returns the same prompt with the first `cleared` outputs as previews."""
        gone = self.thinking if cleared > self.cleared else 0.0
        return PromptSize(self.rest - gone, self.outputs, cleared, self.new, self.thinking - gone)

    def scaled(self, factor: float) -> "PromptSize":
        """Returns the same prompt with all sizes multiplied: what they were estimated by was wrong."""
        outputs = [OutputSize(output.shown * factor, output.preview * factor) for output in self.outputs]
        return PromptSize(self.rest * factor, outputs, self.cleared, self.new, self.thinking * factor)


@dataclass(frozen=True)
class Room:
    """The tokens of a model: its `window`, and what a prompt should have at most (`usual`).

    The rest of the window is for the reply. Prompts that are dearer from a length on should not reach it.
    """

    window: int
    usual: float

    @classmethod
    def of(cls, window: int, dearer_from: int | None = None) -> "Room":
        """Returns the room of a window; prompts of `dearer_from` tokens and more cost more for each of their tokens."""
        usual = window * (1 - limits.REPLY_SHARE)
        return cls(window, usual if dearer_from is None else min(usual, dearer_from * (1 - limits.ESTIMATE_ERROR)))


def outputs_to_clear(size: PromptSize, room: Room) -> int:
    """Returns how many outputs, from the oldest on, are sent as previews; never fewer than before.

    Outputs that the model has not seen yet are cleared only as far as they do not fit otherwise.
    """
    most, now = room.usual, size.total()
    if now <= most:
        return size.cleared
    seen = max(size.cleared, len(size.outputs) - size.new)
    chosen = _first_fitting(size, size.cleared, seen, most * limits.CLEARED_SHARE)
    if size.total(chosen) > most:
        chosen = _first_fitting(size, chosen, len(size.outputs), most)
    freed = now - size.total(chosen)
    full = now > room.window - limits.LEAST_OUTPUT_TOKENS
    worth = freed >= most * limits.CLEARED_LEAST_SHARE
    return chosen if worth or (full and freed > 0) else size.cleared


def _first_fitting(size: PromptSize, least: int, most: int, tokens: float) -> int:
    """Returns the least number of cleared outputs with which the prompt has at most so many tokens, else `most`."""
    return next((count for count in range(least, most) if size.total(count) <= tokens), most)
