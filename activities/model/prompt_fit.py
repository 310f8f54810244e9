"""Prompts that fit into their model's window.

A prompt has the tokens that the provider counted at the last call of its conversation, and those of
what has changed since, by its bytes. Above a share of the window the tool outputs that the model
has seen are shown as previews. A prompt that the provider refuses for its length is shortened once
more, a first prompt to a third.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from activities.model.conversation import Conversation, ConversationView, Opening, tool_results, visible_messages
from activities.model.port import Json, Window, user_message
from temporal_supervisor.supervision.base import limits
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
    """A call to be sent: the conversation that it continues, the messages that it adds, and all as they are shown."""

    past: Conversation | None
    added: list[Json]
    messages: list[Json]
    view: ConversationView
    tokens: int


@dataclass(frozen=True)
class FirstPrompt:
    """The first call of a conversation: a text, or what writes it, and a note after it.

    Without tools `withheld`.
    """

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

    Once other tools are `withheld`, what was thought before is left out: the API takes it only
    after what it was thought with.
    """

    window: Window
    past: Conversation
    added: list[Json]
    whole: list[Json]
    withheld: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.opening, self._view = self.past.opening, self.past.last.view
        if [*self.withheld] != self._view.withheld:
            self._view = self._changed(withheld=[*self.withheld])
        self._seen = sum(len(tool_results(added)) for added in self.past.inputs)
        self._all = self._seen + len(tool_results(self.whole))

    async def first(self) -> CallDraft:
        """Returns the conversation as it was shown last, or where that is too long with previews, of new outputs last.

        A clearing leaves the newest third of what was shown so far if it can: one that frees much
        is not soon followed by another, each of which makes the provider read all of it again. New
        outputs are previews only where the prompt fits by that, as the model has not seen them.
        """
        draft, target, before = self._shown(self._view), self.window.target, self._view.cleared
        if draft.tokens <= target:
            return draft
        counts = ((before + (self._seen - before) * 2 // 3, 1 - _LEAST_GAIN), (self._seen, 1), (self._all, 1))
        drafts = ((self._cleared(count), share * target) for count, share in counts)
        best = next((each for each, most in drafts if each.tokens <= most), None) or self._cleared(self._seen)
        return best if draft.tokens - best.tokens >= target * _LEAST_GAIN else draft

    async def shorter(self, draft: CallDraft) -> CallDraft | None:
        """Returns the conversation with previews of the outputs already seen, else of all.

        None if it stays as long.
        """
        shorter = (self._cleared(count) for count in (self._seen, self._all) if count > draft.view.cleared)
        return next((each for each in shorter if each.tokens < draft.tokens), None)

    def _changed(self, **changes: object) -> ConversationView:
        return self._view.model_copy(update={**changes, "thinking_removed_before": len(self.past.entries)})

    def _cleared(self, count: int) -> CallDraft:
        return self._shown(self._changed(cleared=count))

    def _shown(self, view: ConversationView) -> CallDraft:
        replies, last = [entry.reply.content for entry in self.past.entries], self.past.last
        chars = self.window.output_chars
        messages = visible_messages([*self.past.inputs, self.whole], replies, view, chars)
        usage = last.reply.usage
        if usage.prompt_tokens:
            before = visible_messages(self.past.inputs, replies, last.view, chars)
            changed = [pair for pair in zip(messages, before, strict=False) if pair[0] != pair[1]]
            tokens = usage.prompt_tokens + usage.output_tokens + _json_tokens(messages[len(before) :])
            tokens += sum(_json_tokens([new]) - _json_tokens([old]) for new, old in changed)
        else:  # the endpoint does not count
            tokens = opening_tokens(self.opening, messages)
        return CallDraft(self.past, self.added, messages, view, tokens)


def tokens_of(text: str) -> int:
    """Returns about how many tokens a text has: by its bytes, as scripts with more of them take more tokens."""
    return round(size(text) / limits.CHARS_PER_TOKEN)


def text_tokens(system: str, messages: Sequence[Json]) -> int:
    """Returns about how many tokens the texts of a prompt have, at least.

    Thinking is left out, as servers show none of it to the model again, and tools, as not every
    template has them.
    """
    blocks = [block for message in messages for block in message["content"]]
    return tokens_of(system) + _json_tokens([block for block in blocks if "thinking" not in str(block.get("type"))])


def opening_tokens(opening: Opening, messages: Sequence[Json] = ()) -> int:
    """Returns about how many tokens a conversation's first prompt has."""
    schema = [opening.output_schema] if opening.output_schema else []
    return tokens_of(opening.system) + _json_tokens([*opening.tools, *schema, *messages])


def brief_tokens(tokens: int) -> int:
    """Returns the part of a prompt for findings in a brief, which every turn reads, in tokens."""
    return min(_AGENT_CONTEXT_TOKENS, int(tokens * _AGENT_CONTEXT_SHARE))


def _json_tokens(values: Sequence[Json]) -> int:
    return sum(tokens_of(json.dumps(value, ensure_ascii=False)) for value in values)
