"""The view of a conversation that its model gets: long and old tool outputs are shown cut, the store keeps all.

A view is part of each stored call, so a call that is sent again is sent in the same bytes. Between two clearings a
conversation only grows, which keeps the provider's cache of it. Thinking is bound to all that came before it: what
was thought before a clearing is left out after it, as the provider would refuse it.
"""

from collections.abc import Iterator, Sequence

from activities.model.port import Json
from supervision.agent.agent_tools import beginning, output_name
from supervision.base import limits
from supervision.contract.base import Model

_CLEARED_OUTPUT_CHARS = 600  # of a tool output that has made room: enough to know whether to read it again

_THINKING = ("thinking", "redacted_thinking")
_NOTHING_LEFT: Json = {"type": "text", "text": "(thinking only)"}  # the API refuses a message without content


class ConversationView(Model):
    """How a conversation is shown.

    Its first `cleared` tool outputs are previews, its first `thinking_removed_before` replies are without thinking.
    """

    cleared: int = 0
    thinking_removed_before: int = 0


def visible_messages(inputs: Sequence[list[Json]], replies: Sequence[list[Json]], view: ConversationView) -> list[Json]:
    """Returns the messages of a conversation as its model gets them.

    `inputs` are the messages that its calls added, whole, and `replies` the contents of what came back; the call that
    comes now has no reply yet.
    """
    messages: list[Json] = []
    cleared = 0
    for number, added in enumerate(inputs):
        texts = list(outputs_shown(added, number, view.cleared - cleared))
        cleared += len(texts)
        left = iter(texts)
        messages += [_with_texts(message, left) for message in added]
        if number < len(replies) and replies[number]:  # the provider refuses an empty message
            blocks = assistant_blocks(replies[number], thinking=number >= view.thinking_removed_before)
            messages.append({"role": "assistant", "content": blocks})
    return messages


def outputs_shown(added: list[Json], number: int, cleared: int) -> Iterator[str]:
    """Yields the tool outputs that a call adds as they are shown, the first `cleared` of them as previews.

    `number` is that of the reply which asked for them, from 1.
    """
    for at, block in enumerate(block for message in added for block in tool_results(message)):
        limit = _CLEARED_OUTPUT_CHARS if at < cleared else limits.TOOL_OUTPUT_CHARS
        yield beginning(str(block.get("content", "")), output_name(number, at + 1), limit)


def tool_results(message: Json) -> list[Json]:
    """Returns the tool outputs of a message."""
    content = message["content"]
    return [block for block in content if block.get("type") == "tool_result"] if isinstance(content, list) else []


def assistant_blocks(content: list[Json], *, thinking: bool) -> list[Json]:
    """Returns the blocks of a reply, with or without what was thought."""
    kept = [dict(block) for block in content if thinking or block.get("type") not in _THINKING]
    return kept or [dict(_NOTHING_LEFT)]


def _with_texts(message: Json, texts: Iterator[str]) -> Json:
    if not isinstance(message["content"], list):
        return dict(message)
    return {
        **message,
        "content": [
            {**block, "content": next(texts)} if block.get("type") == "tool_result" else dict(block)
            for block in message["content"]
        ],
    }
