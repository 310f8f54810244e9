"""Prompts that fit into their model's window.

A prompt has the tokens that the provider counted at the last call of its conversation, and those of what is new, by
its bytes. Above a share of the window the oldest tool outputs are shown as previews. After such a clearing the
provider's cache holds nothing of the conversation, so there are few of them, and each frees much. A prompt that the
provider refuses for its length is shortened once more, a first prompt to a third.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from activities.model.conversation import (
    Conversation,
    ConversationView,
    Opening,
    outputs_shown,
    tool_results,
    visible_messages,
)
from activities.model.port import Json, ModelFailure, Window, user_message
from supervision.base import limits
from supervision.base.text import cut, size

_AGENT_CONTEXT_TOKENS = 17_000  # of findings in a worker agent's brief: every turn reads them again
_AGENT_CONTEXT_SHARE = 0.4  # of the room that a prompt has for findings, where that is less: tool outputs come on top

PromptWriter = Callable[[int], Awaitable[str]]
"""Writes a prompt; the texts in it that can be cut have at most so many tokens."""

_CLEARED_SHARE = 0.33  # of the tokens that a prompt should have, to which a clearing cuts
_CLEARED_LEAST_SHARE = 0.1  # and which it must free: a smaller gain is not worth reading all of it again
_ALL = 10**9


@dataclass(frozen=True)
class CallDraft:
    """A call to be sent: the conversation that it continues, the messages that it adds, and all as they are shown."""

    past: Conversation | None
    added: list[Json]
    messages: list[Json]
    view: ConversationView
    tokens: int


@dataclass(frozen=True)
class FirstPrompt:
    """The first call of a conversation: a text, or what writes it, and a note after it; without tools `withheld`."""

    window: Window
    opening: Opening
    text: str | PromptWriter
    note: str | None = None
    withheld: Sequence[str] = ()

    async def first(self) -> CallDraft:
        """Returns the prompt with as much of the texts that can be cut as the window has room for."""
        room = self.window.prompt_tokens
        draft = await self._written(room)
        excess = draft.tokens - self.window.target
        return draft if excess <= 0 else await self._written(max(0, room - excess))

    async def shorter(self, draft: CallDraft) -> CallDraft | None:
        """Returns the prompt with a third of that at most; None if nothing can be cut."""
        written = await self._written(min(self.window.prompt_tokens, draft.tokens) // 3)
        return written if written.messages != draft.messages else None

    async def _written(self, room: int) -> CallDraft:
        text = self.text if isinstance(self.text, str) else await self.text(room)
        messages = [user_message(text, *([self.note] if self.note else []))]
        view = ConversationView(withheld=[*self.withheld])
        return CallDraft(None, messages, messages, view, opening_tokens(self.opening, messages))


@dataclass
class NextPrompt:
    """A later call: the conversation `past` with messages `added`, which are `whole` with their tool outputs.

    `instead` asks the question in a conversation of its own, where this one has no room for it. Once other tools are
    `withheld`, what was thought before is left out: the API takes it only after what it was thought with.
    """

    window: Window
    past: Conversation
    added: list[Json]
    whole: list[Json]
    withheld: Sequence[str] = ()
    instead: FirstPrompt | None = None

    def __post_init__(self) -> None:
        self.opening, self._new = self.past.opening, len(tool_results(self.whole))
        self._view = self.past.last.view
        if [*self.withheld] != self._view.withheld:
            changed = {"withheld": [*self.withheld], "thinking_removed_before": len(self.past.entries)}
            self._view = self._view.model_copy(update=changed)

    async def first(self) -> CallDraft:
        """Returns the conversation as it was shown last, or after a clearing where it gets too long."""
        draft, target = self._shown(self._view), self.window.target
        if draft.tokens <= target:
            return draft
        cleared = outputs_to_clear(draft.tokens, self._gains, self.past.last.view.cleared, self._new, target)
        return draft if cleared == self.past.last.view.cleared else self._cleared(cleared)

    async def shorter(self, draft: CallDraft) -> CallDraft | None:
        """Returns the conversation with previews of its old outputs, else of all; None if that frees nothing."""
        for cleared in (len(self._gains) - self._new, len(self._gains)):
            if sum(self._gains[draft.view.cleared : cleared]) > 0:
                return self._cleared(cleared)
        return await self.instead.shorter(draft) if self.instead else None

    @cached_property
    def _gains(self) -> list[int]:
        """The tokens that each tool output, the oldest first, frees as a preview."""
        gains = []
        for number, added in enumerate([*self.past.inputs, self.whole]):
            shown, previews = outputs_shown(added, number, 0), outputs_shown(added, number, _ALL)
            gains += [tokens_of(text) - tokens_of(preview) for text, preview in zip(shown, previews, strict=True)]
        return gains

    def _cleared(self, count: int) -> CallDraft:
        changed = {"cleared": count, "thinking_removed_before": len(self.past.entries)}
        return self._shown(self._view.model_copy(update=changed))

    def _shown(self, view: ConversationView) -> CallDraft:
        replies = [entry.reply.content for entry in self.past.entries]
        messages = visible_messages([*self.past.inputs, self.whole], replies, view)
        last = self.past.last.reply.usage
        if not last.prompt_tokens:  # the endpoint does not count
            return CallDraft(self.past, self.added, messages, view, opening_tokens(self.opening, messages))
        tokens = last.prompt_tokens + last.output_tokens + _json_tokens(messages[len(messages) - len(self.whole) :])
        if view.cleared > self.past.last.view.cleared:
            tokens -= sum(self._gains[self.past.last.view.cleared : min(view.cleared, len(self._gains) - self._new)])
        return CallDraft(self.past, self.added, messages, view, tokens)


def outputs_to_clear(tokens: int, gains: Sequence[int], cleared: int, new: int, target: int) -> int:
    """Returns how many tool outputs, from the oldest on, should be previews: as many as before, if not many more.

    `gains` are the tokens that each frees. The last `new` ones, which the model has not seen yet, give way only as
    far as the prompt does not fit otherwise.
    """
    left, count = tokens, cleared
    while count < len(gains) and left > (target if count >= len(gains) - new else target * _CLEARED_SHARE):
        left -= gains[count]
        count += 1
    return count if tokens > target and tokens - left >= target * _CLEARED_LEAST_SHARE else cleared


def corrected(write: PromptWriter, words: str) -> PromptWriter:
    """Returns a writer of the prompt with what was wrong with an earlier reply to it."""

    async def within(tokens: int) -> str:
        return f"{await write(tokens)}\n\nYour previous reply was removed to save space. {words}"

    return within


def lasting(refusal: ModelFailure) -> ModelFailure:
    """Returns the refusal of a prompt from which nothing more can be left out, with what helps."""
    message = (
        f"{cut(refusal.message, limits.SENTENCE_BYTES)}. Nothing more can be left out: use a model with a "
        "larger window (models.supervisor for plans, reviews and answers, models.workers or a role's own model for "
        "subtasks), or shorten the goal, the subtask or the prompts of the team. If the model's window is smaller "
        "than the price list says, or is not in it, set SUPERVISOR_MODEL_WINDOW, and prompts are fitted to it."
    )
    return ModelFailure(refusal.kind, message, retryable=False, status=refusal.status, request_id=refusal.request_id)


def tokens_of(text: str) -> int:
    """Returns about how many tokens a text has: by its bytes, as scripts with more of them take more tokens."""
    return round(size(text) / limits.CHARS_PER_TOKEN)


def opening_tokens(opening: Opening, messages: Sequence[Json] = ()) -> int:
    """Returns about how many tokens a conversation's first prompt has."""
    schema = [opening.output_schema] if opening.output_schema else []
    return tokens_of(opening.system) + _json_tokens([*opening.tools, *schema, *messages])


def brief_tokens(tokens: int) -> int:
    """Returns how many of a prompt's tokens are for findings in a worker agent's brief, which every turn reads."""
    return min(_AGENT_CONTEXT_TOKENS, int(tokens * _AGENT_CONTEXT_SHARE))


def _json_tokens(values: Sequence[Json]) -> int:
    return sum(tokens_of(json.dumps(value, ensure_ascii=False)) for value in values)
