"""Messages on the wire: one JSON object, or the events of a stream."""

import json
from collections.abc import Iterator

from standin.server.api_reply import ApiReply, block_text
from standin.server.api_request import Json

Events = Iterator[Json]
_START_ONLY: dict[str, Json] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def message(reply: ApiReply, message_id: str, model: str, usage: Json) -> Json:
    """Returns the reply as one object."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{k: v for k, v in block.items() if k != "_cut_json"} for block in reply.content],
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        **({"stop_details": reply.stop_details} if reply.stop_details else {}),
        "usage": usage,
    }


def events(reply: ApiReply, message_id: str, model: str, usage: Json, delta_chars: int) -> Events:
    """Returns the reply as a stream's events, at most `delta_chars` of text in each."""
    opening = {**usage, "output_tokens": 1}
    head = message(ApiReply([]), message_id, model, opening)
    yield {"type": "message_start", "message": {**head, "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(reply.content):
        started = {k: v for k, v in block.items() if k != "_cut_json"} | _START_ONLY.get(block["type"], {})
        yield {"type": "content_block_start", "index": index, "content_block": started}
        for delta in _deltas(block, delta_chars):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop: Json = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    if reply.stop_details:
        stop["stop_details"] = reply.stop_details
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def encode(event: Json) -> bytes:
    """Returns one event as bytes: ASCII, so that half of a surrogate pair arrives as it was written."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def error(error_type: str, text: str, request_id: str, details: Json | None = None) -> Json:
    """Returns the body of an error reply."""
    body = {"type": error_type, "message": text, **({"details": details} if details else {})}
    return {"type": "error", "error": body, "request_id": request_id}


def _deltas(block: Json, size: int) -> Iterator[Json]:
    text = block_text(block)
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces)
        yield from ({"type": "citations_delta", "citation": citation} for citation in block.get("citations") or [])
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces)
        yield {"type": "signature_delta", "signature": block.get("signature", "")}
    elif block["type"] == "tool_use":
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
