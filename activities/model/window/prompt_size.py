"""The size of the next prompt of a conversation, in tokens: from what the provider counted last, else from bytes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from activities.model.conversation import Conversation, Entry, Opening
from activities.model.port import Json
from activities.model.window.view import THINKING, outputs_shown, results, said
from supervision import limits
from supervision.agent.clearing import OutputSize, PromptSize
from supervision.text import size

_ALL = 10**9
_PLAUSIBLE = (1.0, 8.0)  # bytes of a token: usage beyond was not counted by a tokenizer


@dataclass(frozen=True)
class _Outputs:
    """The tool outputs of a conversation, in bytes: as they are shown first, as previews, and how many are new."""

    shown: list[int]
    previews: list[int]
    new: int

    def total(self, cleared: int) -> int:
        return sum(self.previews[:cleared]) + sum(self.shown[cleared:])


def opening_tokens(opening: Opening, messages: Sequence[Json] = ()) -> int:
    """Returns about how many tokens a conversation's first prompt has."""
    return round((_opening(opening) + _plain(messages)) / limits.CHARS_PER_TOKEN)


def next_size(past: Conversation, added: list[Json]) -> PromptSize:
    """Returns the size of the prompt that adds messages, shown as the last call showed the conversation."""
    outputs, view = _outputs([*past.inputs, added]), past.view
    sent = _sent(past, outputs, view.cleared, view.quiet)
    last = past.entries[-1].reply
    counted, ratio = last.usage.prompt_tokens, limits.CHARS_PER_TOKEN
    if counted and _PLAUSIBLE[0] <= sent / counted <= _PLAUSIBLE[1]:
        ratio = sent / counted
        total = counted + max(last.usage.output_tokens, _plain_blocks(last.content) / ratio)
    else:
        total = (sent + _plain_blocks(last.content)) / ratio
    total += (_plain(added) + sum(outputs.shown[len(outputs.shown) - outputs.new :])) / ratio
    sizes = [OutputSize(a / ratio, b / ratio) for a, b in zip(outputs.shown, outputs.previews, strict=True)]
    return PromptSize(
        rest=max(0.0, total - outputs.total(view.cleared) / ratio),
        outputs=sizes,
        cleared=view.cleared,
        new=outputs.new,
        thinking=sum(_thinking(entry, ratio) for entry in past.entries[view.quiet :]),
    )


def surely_fits(past: Conversation, added: list[Json], tokens: float) -> bool:
    """True if the next prompt has at most so many tokens, as no token is shorter than a byte.

    It spares the many calls that are far below a limit the look at each block. False says nothing.
    """
    last = past.entries[-1].reply
    counted = last.usage.prompt_tokens
    texts = sum(len(str(b.get("content", ""))) for m in (m for i in past.inputs for m in i) for b in results(m))
    plausible = texts <= counted * _PLAUSIBLE[1]
    return plausible and counted + last.usage.output_tokens + _json(added) <= tokens


def _sent(past: Conversation, outputs: _Outputs, cleared: int, quiet: int) -> int:
    """Returns the bytes of the last call's prompt."""
    before = len(outputs.shown) - outputs.new
    texts = sum(outputs.previews[:cleared]) + sum(outputs.shown[cleared:before])
    replies = [
        _plain_blocks(said(entry.reply.content, thinking=number >= quiet))
        for number, entry in enumerate(past.entries[:-1])
    ]
    return _opening(past.opening) + texts + sum(map(_plain, past.inputs)) + sum(replies)


def _outputs(inputs: Sequence[list[Json]]) -> _Outputs:
    shown: list[int] = []
    previews: list[int] = []
    for number, added in enumerate(inputs):
        shown += map(size, outputs_shown(added, number, 0))
        previews += map(size, outputs_shown(added, number, _ALL))
    return _Outputs(shown, previews, sum(len(results(message)) for message in inputs[-1]))


def _thinking(entry: Entry, ratio: float) -> float:
    """Returns the tokens of what was thought before a reply; its blocks show a summary of it only."""
    if not any(block.get("type") in THINKING for block in entry.reply.content):
        return 0.0
    spoken = _plain_blocks(said(entry.reply.content, thinking=False)) / ratio
    return max(0.0, entry.reply.usage.output_tokens - spoken)


def _opening(opening: Opening) -> int:
    return size(opening.system) + _plain_blocks(opening.tools) + (_json(opening.output_schema or {}))


def _plain(messages: Iterable[Json]) -> int:
    """Returns the bytes of messages without the texts of their tool outputs."""
    total = 0
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            total += size(content)
        else:
            total += sum(_json({**b, "content": ""}) if b.get("type") == "tool_result" else _json(b) for b in content)
    return total


def _plain_blocks(blocks: Iterable[Json]) -> int:
    return sum(map(_json, blocks))


def _json(value: object) -> int:
    return size(json.dumps(value, ensure_ascii=False))
