"""Prompts that fit into their model's window.

The size of a prompt is the provider's token count at the last call of its conversation, plus an
estimate of the changes by their bytes. Above a share of the window the tool outputs that the model
has already seen become previews. A prompt that the provider refuses for its length is shortened
once more, a first prompt to a third.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from activities.model.conversation import (
    Conversation,
    ConversationView,
    Opening,
    tool_results,
    visible_messages,
)
from activities.model.port import Window, user_message
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import size

_AGENT_CONTEXT_TOKENS = 17_000  # of findings in a worker agent's brief: every turn reads them again
# Of the room that a prompt has for findings, where that is less: tool outputs come on top.
_AGENT_CONTEXT_SHARE = 0.4

PromptWriter = Callable[[int], Awaitable[str]]
"""Writes a prompt; the texts in it that can be cut have at most so many tokens."""

# Of the tokens that a prompt should have at most: a smaller gain is not worth reading it all again.
_LEAST_GAIN = 0.1


@dataclass(frozen=True)
class CallDraft:
    """A call to be sent: the conversation that it continues, and the messages that it adds."""

    past: Conversation | None
    added: list[JsonObject]
    messages: list[JsonObject]
    view: ConversationView
    tokens: int


@dataclass(frozen=True)
class FirstPrompt:
    """The first call of a conversation: a text or its writer, and a note.

    It does not offer the `withheld` tools.
    """

    window: Window
    opening: Opening
    text: str | PromptWriter
    note: str | None = None
    withheld: Sequence[str] = ()

    async def first_draft(self) -> CallDraft:
        """Returns the prompt; texts that can be cut fill their share of the window."""
        room = self.window.prompt_tokens
        draft = await self._write_draft(room)
        excess = draft.tokens - self.window.target
        return draft if excess <= 0 else await self._write_draft(max(0, room - excess))

    async def shorter(self, draft: CallDraft) -> CallDraft | None:
        """Returns the prompt with at most a third of its tokens; None if nothing can be cut."""
        written = await self._write_draft(min(self.window.prompt_tokens, draft.tokens) // 3)
        return written if written.messages != draft.messages else None

    async def _write_draft(self, room: int) -> CallDraft:
        text = self.text if isinstance(self.text, str) else await self.text(room)
        message = user_message(text, self.note) if self.note else user_message(text)
        view = ConversationView(withheld=[*self.withheld])
        tokens = opening_tokens(self.opening, [message])
        return CallDraft(None, [message], [message], view, tokens)


@dataclass
class NextPrompt:
    """A later call: the conversation `past` and the messages `added`.

    `whole` has the added messages with complete tool outputs.

    If the `withheld` tools change, earlier thinking is removed: the API accepts it only after
    exactly the prompt that it was made for.
    """

    window: Window
    past: Conversation
    added: list[JsonObject]
    whole: list[JsonObject]
    withheld: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.opening, self._view = self.past.opening, self.past.last_entry.view
        if [*self.withheld] != self._view.withheld:
            self._view = self._changed_view(withheld=[*self.withheld])
        self._seen = sum(len(tool_results(added)) for added in self.past.inputs)
        self._all = self._seen + len(tool_results(self.whole))

    async def first_draft(self) -> CallDraft:
        """Returns the conversation as it was last shown, with more previews if it is too long.

        A clearing that frees little is soon followed by another, and after each one the provider
        reads the whole conversation again. So it clears two thirds of the outputs that are still
        complete, if that is more than enough, else all that the model has seen. Outputs that it has
        not seen become previews only if nothing else makes the prompt fit.
        """
        draft = self._draft_of(self._view)
        target = self.window.target
        if draft.tokens <= target:
            return draft
        shorter = self._fitting(target)
        gain = draft.tokens - shorter.tokens
        return shorter if gain >= target * _LEAST_GAIN else draft

    def _fitting(self, target: float) -> CallDraft:
        """Returns the first of three clearings that fits; the second one if none does."""
        cleared = self._view.cleared
        most_of_it = self._cleared(cleared + (self._seen - cleared) * 2 // 3)
        if most_of_it.tokens <= target * (1 - _LEAST_GAIN):
            return most_of_it
        all_seen = self._cleared(self._seen)
        if all_seen.tokens <= target:
            return all_seen
        everything = self._cleared(self._all)
        return everything if everything.tokens <= target else all_seen

    async def shorter(self, draft: CallDraft) -> CallDraft | None:
        """Returns the conversation with previews of the outputs that the model has seen.

        If that makes it no shorter, all outputs become previews. None if not even that helps.
        """
        for count in (self._seen, self._all):
            if count <= draft.view.cleared:
                continue
            cleared = self._cleared(count)
            if cleared.tokens < draft.tokens:
                return cleared
        return None

    def _changed_view(self, **changes: object) -> ConversationView:
        """Returns a changed view, without all thinking so far, as the API requires."""
        thinking = {"thinking_removed_before": len(self.past.entries)}
        return self._view.model_copy(update={**changes, **thinking})

    def _cleared(self, count: int) -> CallDraft:
        return self._draft_of(self._changed_view(cleared=count))

    def _draft_of(self, view: ConversationView) -> CallDraft:
        """Returns the call in a view, with its tokens."""
        replies = [entry.reply.content for entry in self.past.entries]
        chars = self.window.output_chars
        messages = visible_messages([*self.past.inputs, self.whole], replies, view, chars)
        last = self.past.last_entry
        usage = last.reply.usage
        if not usage.prompt_tokens:  # the endpoint does not count
            tokens = opening_tokens(self.opening, messages)
            return CallDraft(self.past, self.added, messages, view, tokens)
        # The provider counted the last prompt and its reply; what is new or changed is estimated.
        before = visible_messages(self.past.inputs, replies, last.view, chars)
        tokens = usage.prompt_tokens + usage.output_tokens
        tokens += _json_tokens(messages[len(before) :])
        for new, old in zip(messages, before, strict=False):
            if new != old:
                tokens += _json_tokens([new]) - _json_tokens([old])
        return CallDraft(self.past, self.added, messages, view, tokens)


def tokens_of(text: str) -> int:
    """Returns an estimate of a text's tokens by its bytes."""
    return round(size(text) / limits.CHARS_PER_TOKEN)


def text_tokens(system: str, messages: Sequence[JsonObject]) -> int:
    """Returns an estimate of the minimum of tokens in the texts of a prompt.

    Thinking is excluded, because servers do not show it to the model again, and so are tools, which
    not every template contains.
    """
    texts = []
    for message in messages:
        for block in message["content"]:
            if "thinking" not in str(block.get("type")):
                texts.append(block)
    return tokens_of(system) + _json_tokens(texts)


def opening_tokens(opening: Opening, messages: Sequence[JsonObject] = ()) -> int:
    """Returns an estimate of the tokens of a conversation's first prompt."""
    schema = [opening.output_schema] if opening.output_schema else []
    return tokens_of(opening.system) + _json_tokens([*opening.tools, *schema, *messages])


def brief_tokens(tokens: int) -> int:
    """Returns the tokens for findings in a brief, which every turn reads again."""
    return min(_AGENT_CONTEXT_TOKENS, int(tokens * _AGENT_CONTEXT_SHARE))


def _json_tokens(values: Sequence[JsonObject]) -> int:
    return sum(tokens_of(json.dumps(value, ensure_ascii=False)) for value in values)
