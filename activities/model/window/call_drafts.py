"""Drafts of a call: the messages as they should be sent to fit into the model's window, and a shorter version.

A conversation's first prompt is shortened by leaving less room for the texts that can be cut, a later one by letting
tool outputs give way to previews.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from activities.model.conversation import Conversation, ConversationStore, Opening
from activities.model.port import Json, ModelFailure, system_note, user_message
from activities.model.window.known_windows import KnownWindows, refused_size
from activities.model.window.prompt_size import next_size, opening_tokens, surely_fits
from activities.model.window.view import View, shown
from supervision import limits
from supervision.agent.clearing import PromptSize, Room, outputs_to_clear

PromptWriter = Callable[[int], Awaitable[str]]
"""Writes a prompt; the texts in it that can be cut have at most so many tokens."""
Counter = Callable[[list[Json]], Awaitable[int | None]]
"""Returns how many tokens the provider counts in a prompt of these messages; None if it does not say."""


def corrected(write: PromptWriter, words: str) -> PromptWriter:
    """Returns a writer of the prompt with what was wrong with an earlier reply to it."""

    async def within(tokens: int) -> str:
        return f"{await write(tokens)}\n\nYour last reply is left out here for lack of room. {words}"

    return within


@dataclass(frozen=True)
class First:
    """The first prompt of a conversation: its opening, and its text or how that is written."""

    opening: Opening
    text: str | PromptWriter


@dataclass(frozen=True)
class CallDraft:
    """A call to be sent: the messages that it adds to its conversation, all as they are shown, and the view."""

    added: list[Json]
    shown: list[Json]
    view: View


class CallDrafts(ABC):
    """The drafts of one call; `past` is the conversation that it goes on with."""

    opening: Opening
    past: Conversation | None = None

    @property
    @abstractmethod
    def is_long(self) -> bool:
        """True if the prompt may be too long for the smallest windows."""

    @abstractmethod
    async def first(self, earlier: View | None, count: Counter) -> CallDraft:
        """Returns the draft to send; `earlier` is the view with which an attempt before this one had to be sent."""

    @abstractmethod
    async def shorter(self, draft: CallDraft, refusal: ModelFailure) -> CallDraft | None:
        """Returns a shorter draft after the provider refused one for its length; None if nothing can be left out."""


class Beginning(CallDrafts):
    """The first call of a conversation."""

    def __init__(self, windows: KnownWindows, first: First, note: str | None = None) -> None:
        self.opening = first.opening
        self._windows = windows
        self._text = first.text
        self._note = note

    @property
    def is_long(self) -> bool:
        """True if texts that can be cut are a part of it."""
        return not isinstance(self._text, str)

    async def first(self, earlier: View | None, count: Counter) -> CallDraft:
        """Returns the prompt with as much of the texts that can be cut as the window has room for."""
        room = self._windows.prompt_tokens(self.opening.model)
        draft = await self._written(room)
        most = Room.of(self._windows.of(self.opening.model)).usual
        excess = opening_tokens(self.opening, draft.shown) - most
        return draft if excess <= 0 else await self._written(max(0, int(room - excess)))

    async def shorter(self, draft: CallDraft, refusal: ModelFailure) -> CallDraft | None:
        """Returns the prompt with half of that at most, less if the provider says how much it was too long."""
        tokens, window = refused_size(refusal)
        most = min(self._windows.prompt_tokens(self.opening.model), opening_tokens(self.opening, draft.shown))
        excess = tokens / window if tokens and window else 1.0
        written = await self._written(int(most / 2 / max(1.0, excess)))
        return written if written.shown != draft.shown else None

    async def _written(self, room: int) -> CallDraft:
        text = self._text if isinstance(self._text, str) else await self._text(room)
        messages = [user_message(text), *([system_note(self._note)] if self._note else [])]
        return CallDraft(messages, messages, View())


class Continuation(CallDrafts):
    """A later call: a conversation with messages appended, whose tool outputs are `added` by reference."""

    def __init__(self, windows: KnownWindows, past: Conversation, added: list[Json], whole: list[Json]) -> None:
        """`whole` are the messages with their tool outputs in place."""
        self.opening = past.opening
        self.past: Conversation = past
        self._windows = windows
        self._added = added
        self._whole = whole

    @classmethod
    async def after(
        cls, windows: KnownWindows, conversations: ConversationStore, head: str, added: list[Json]
    ) -> "Continuation":
        """Returns the drafts of a call that goes on with the conversation at `head`."""
        return cls(windows, await conversations.load(head), added, await conversations.resolve(added))

    @property
    def is_long(self) -> bool:
        """True if it is longer than the first prompts of most conversations."""
        return self._size.total() > limits.WINDOW_ASKED_TOKENS

    async def first(self, earlier: View | None, count: Counter) -> CallDraft:
        """Returns the conversation as it was shown last, or after a clearing where it gets too long."""
        if earlier is not None:
            return self._as(earlier)
        draft, room = self._as(self.past.view), self._windows.room(self.opening.model)
        if surely_fits(self.past, self._whole, room.usual):
            return draft
        size = self._size
        if _is_close(size.total(), room) and (counted := await count(draft.shown)):
            size = size.scaled(counted / size.total())
        return self._cleared(size, room) or draft

    async def shorter(self, draft: CallDraft, refusal: ModelFailure) -> CallDraft | None:
        """Returns the conversation after a clearing to what the provider takes, as far as it says that."""
        tokens, window = refused_size(refusal)
        size = self._size.at(draft.view.cleared)
        if tokens is not None:
            size = size.scaled(tokens / size.total())
        # Where the provider names no window, all that is known is that it takes less than this.
        most = min(window or self._windows.of(self.opening.model), int(size.total()))
        return self._cleared(size, Room.of(most))

    @cached_property
    def _size(self) -> PromptSize:
        return next_size(self.past, self._whole)

    def _cleared(self, size: PromptSize, room: Room) -> CallDraft | None:
        """Returns the conversation after a clearing; None if there is none to make."""
        cleared = outputs_to_clear(size, room)
        return None if cleared == size.cleared else self._as(View(cleared=cleared, quiet=len(self.past.entries)))

    def _as(self, view: View) -> CallDraft:
        replies = [entry.reply.content for entry in self.past.entries]
        return CallDraft(self._added, shown([*self.past.inputs, self._whole], replies, view), view)


class Correction(CallDrafts):
    """A reply that is sent back with what is wrong with it; where its conversation has no room, it begins anew."""

    def __init__(self, in_place: Continuation, anew: Beginning) -> None:
        """`anew` is the conversation's first prompt with what is wrong."""
        self.opening = anew.opening
        self.past = in_place.past
        self._in_place = in_place
        self._anew = anew

    @property
    def is_long(self) -> bool:
        """True if the conversation is."""
        return self._in_place.is_long

    async def first(self, earlier: View | None, count: Counter) -> CallDraft:
        """Returns the conversation with the words at its end."""
        return await self._in_place.first(earlier, count)

    async def shorter(self, draft: CallDraft, refusal: ModelFailure) -> CallDraft | None:
        """Returns the first prompt of a new conversation: without the reply and what was thought before it."""
        self.past = None
        return await self._anew.shorter(draft, refusal)


def _is_close(tokens: float, room: Room) -> bool:
    return abs(tokens - room.usual) < room.usual * limits.ESTIMATE_ERROR
