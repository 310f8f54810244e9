"""A reply of the Messages API as a brain makes it: content blocks and why they end, or an error."""

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.supervision.base.json_object import JsonObject

_CHARS_A_TOKEN = 4  # about what English text takes


@dataclass(frozen=True)
class ApiReply:
    """A message's content. Without `usage` it is counted from the texts."""

    content: list[JsonObject]
    stop_reason: str = "end_turn"
    stop_details: JsonObject | None = None
    usage: JsonObject | None = None


@dataclass
class ErrorReply(Exception):
    """A reply that is an error; `type` empty is the one that goes with the status."""

    status: int
    message: str
    type: str = ""
    headers: dict[str, str] = field(default_factory=dict)


Brain = Callable[[ApiRequest], ApiReply | Awaitable[ApiReply]]
"""Makes the replies of a server. May raise ErrorReply."""


def text_block(text: str) -> JsonObject:
    """Returns a text block."""
    return {"type": "text", "text": text}


def text_reply(text: str) -> ApiReply:
    """Returns a reply of one text."""
    return ApiReply([text_block(text)])


def json_reply(value: Any) -> ApiReply:
    """Returns a reply of one JSON text."""
    return text_reply(json.dumps(value, ensure_ascii=False))


def tool_block(name: str, arguments: Any) -> JsonObject:
    """Returns a tool_use block with an id of its own."""
    return {
        "type": "tool_use",
        "id": f"toolu_{secrets.token_hex(12)}",
        "name": name,
        "input": arguments,
    }


def block_text(block: JsonObject) -> str:
    """Returns the text that a block is written as."""
    if block["type"] in ("tool_use", "server_tool_use"):
        return json.dumps(block["input"], ensure_ascii=False)
    return str(block.get("text") or block.get("thinking") or "")


def token_count(characters: int) -> int:
    """Returns about how many tokens so many characters are."""
    return max(1, round(characters / _CHARS_A_TOKEN))


def output_tokens(reply: ApiReply) -> int:
    """Returns about how many tokens the content has."""
    return sum(token_count(len(block_text(block))) for block in reply.content)
