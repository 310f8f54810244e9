"""How replies go out: errors, streams and single objects, broken where a fault says so."""

import asyncio
import json
from typing import Literal

from standin.server import sse
from standin.server.api_request import Json
from standin.server.exchange import HttpExchange
from standin.server.faults import Fault

_PING_SECONDS = 0.5  # between pings of a stalled stream

Ending = Literal["answered", "failed"]
_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 408: "timeout_error", 409: "conflict_error", 413: "request_too_large",
    429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip
_GARBAGE = {
    "html": ("text/html", b"<html><body>Welcome to the gateway</body></html>"),
    "empty": ("text/event-stream", b""),
    "json": ("application/json", b"{}"),
    "broken_json": ("application/json", b'{"id": "msg_'),
}


def _error_type(status: int) -> str:
    """Returns the error type that goes with a status."""
    return _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


async def garbage(exchange: HttpExchange, kind: str) -> Ending:
    """Sends status 200 with a body that is no message."""
    content_type, body = _GARBAGE[kind]
    await exchange.whole(200, body, content_type)
    return "failed"


async def fail(exchange: HttpExchange, fault: Fault, status: int) -> Ending:
    """Sends a scripted error."""
    if fault.body is not None:
        await exchange.whole(status, fault.body.encode(), "text/html", **fault.headers)
        return "failed"
    error_type = fault.type or _error_type(status)
    body = sse.error(error_type, fault.message, f"req_{exchange.number:06d}", fault.details)
    await exchange.whole(status, json.dumps(body).encode(), **fault.headers)
    return "failed"


async def stream(exchange: HttpExchange, events: sse.Events, fault: Fault, pause: float) -> Ending:
    """Sends events, ended or stalled where the fault says so; `pause` in seconds before each delta."""
    await exchange.start(200, "text/event-stream; charset=utf-8", {"cache-control": "no-cache", **fault.headers})
    await exchange.write(b"")
    for sent, event in enumerate(events):
        if (ended := await _broken(exchange, fault, sent)) is not None:
            return ended
        if pause and event["type"] == "content_block_delta":
            await asyncio.sleep(pause)
        await exchange.write(sse.encode(event), more=event["type"] != "message_stop")
    return "answered"


async def _broken(exchange: HttpExchange, fault: Fault, sent: int) -> Ending | None:
    """Ends or stalls a stream where the fault says so; a reply that is not ended makes the server drop the line."""
    if fault.cut_after is not None and sent >= fault.cut_after:
        return "failed"
    if fault.eof_after is not None and sent >= fault.eof_after:
        await exchange.write(b"", more=False)
        return "failed"
    if fault.sse_error is not None and sent >= fault.sse_error.after:
        body = sse.error(fault.sse_error.type, fault.sse_error.message, f"req_{exchange.number:06d}")
        await exchange.write(sse.encode(body), more=False)
        return "failed"
    if fault.stall_after is not None and (
        sent == fault.stall_after or (sent > fault.stall_after and not fault.stall_ms)
    ):
        await _stall(exchange, fault)
    return None


async def _stall(exchange: HttpExchange, fault: Fault) -> None:
    """Sends pings or nothing, as long as the fault says."""
    left = float("inf") if fault.stall_ms is None else fault.stall_ms / 1000
    while left > 0:
        await asyncio.sleep(min(_PING_SECONDS, left))
        left -= _PING_SECONDS
        if fault.pings:
            await exchange.write(sse.encode({"type": "ping"}))


async def single(exchange: HttpExchange, message: Json, fault: Fault) -> Ending:
    """Sends one JSON object; faults of a stream apply to its first half."""
    body = json.dumps(message).encode()
    if not fault.breaks:
        await exchange.whole(200, body, **fault.headers)
        return "answered"
    await exchange.start(200, "application/json", fault.headers)
    await exchange.write(body[: len(body) // 2])
    return await _broken(exchange, fault, len(body)) or "failed"
