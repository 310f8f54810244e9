"""The story of an attempt that failed: the calls that it made, how each ended, and its last words."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from activities.model.conversation import Conversation, ConversationStore
from activities.model.port import Json
from supervision import limits
from supervision.prompt_marks import FINISH_TOOL
from supervision.text import cut, one_line


async def attempt_story(conversations: ConversationStore, head: str) -> str:
    """Returns one line for each tool call of the conversation at `head`, with its outcome, and the last words."""
    conversation = await conversations.load(head)
    lines = [*_call_lines(conversation)][-limits.ATTEMPT_CALLS_SHOWN :]
    words = _last_words(conversation.messages)
    return "\n".join([*lines, *([f"Its last words: {words}"] if words else [])])


def _call_lines(conversation: Conversation) -> Iterator[str]:
    outcomes = {block.get("tool_use_id"): block for block in _blocks(conversation.messages, "tool_result")}
    for call in _blocks(conversation.messages, "tool_use"):
        if call.get("name") == FINISH_TOOL:
            continue
        arguments = json.dumps(call.get("input"), ensure_ascii=False)
        outcome = outcomes.get(call.get("id"))
        head = one_line(f"{call.get('name')}({arguments})", limits.EVIDENCE_BYTES)
        yield f"{head}: {_outcome(outcome)}"


def _outcome(block: Json | None) -> str:
    if block is None:
        return "not run"
    content = block.get("content")
    preview = one_line(content if isinstance(content, str) else json.dumps(content), limits.EVIDENCE_BYTES)
    return f"error: {preview}" if block.get("is_error") else preview


def _last_words(messages: Sequence[Json]) -> str:
    """Returns the last text that the model wrote, or the summary of its conclusion."""
    for message in reversed(messages):
        if message["role"] != "assistant":
            continue
        for block in reversed(list(_blocks([message]))):
            text = block.get("text") if block.get("type") == "text" else _concluded(block)
            if isinstance(text, str) and text.strip():
                return cut(text.strip(), limits.LAST_WORDS_BYTES)
    return ""


def _concluded(block: Json) -> object:
    arguments: Any = block.get("input")
    finished = block.get("type") == "tool_use" and block.get("name") == FINISH_TOOL and isinstance(arguments, dict)
    return (arguments.get("summary") or arguments.get("finding")) if finished else None


def _blocks(messages: Sequence[Json], kind: str | None = None) -> Iterator[Json]:
    for message in messages:
        if isinstance(message["content"], list):
            yield from (block for block in message["content"] if kind is None or block.get("type") == kind)
