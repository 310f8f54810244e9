"""Messages on the wire: one JSON object, or the events of a stream."""

import json
from collections.abc import Iterator

from standin.brain import Reply
from standin.request import Json
from supervision import limits

Events = Iterator[Json]
_START_ONLY: dict[str, Json] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def message(reply: Reply, message_id: str, model: str, usage: Json) -> Json:
    """The reply as one object."""
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


def events(reply: Reply, message_id: str, model: str, usage: Json) -> Events:
    """The reply as a stream's events."""
    opening = {**usage, "output_tokens": 1}
    head = message(Reply([]), message_id, model, opening)
    yield {"type": "message_start", "message": {**head, "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(reply.content):
        started = {k: v for k, v in block.items() if k != "_cut_json"} | _START_ONLY.get(block["type"], {})
        yield {"type": "content_block_start", "index": index, "content_block": started}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop: Json = {"stop_reason": reply.stop_reason, "stop_sequence": None}
    if reply.stop_details:
        stop["stop_details"] = reply.stop_details
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def encode(event: Json) -> bytes:
    """One event as bytes."""
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def error(type: str, text: str, request_id: str, details: Json | None = None) -> Json:
    """The body of an error reply."""
    what: Json = {"type": type, "message": text}
    if details:
        what["details"] = details
    return {"type": "error", "error": what, "request_id": request_id}


def _deltas(block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": part} for part in _pieces(block["text"]))
        yield from ({"type": "citations_delta", "citation": one} for one in block.get("citations") or [])
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": part} for part in _pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block.get("signature", "")}
    elif block["type"] == "tool_use":
        text = block.get("_cut_json") or json.dumps(block["input"], ensure_ascii=False)
        yield from ({"type": "input_json_delta", "partial_json": part} for part in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    size = limits.STANDIN_DELTA_CHARS
    yield from (text[at : at + size] for at in range(0, len(text), size))
