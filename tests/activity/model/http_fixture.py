"""A scriptable HTTP server on loopback that can misbehave at every point of a streamed answer."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from temporal_supervisor.standin.server.api_reply import text_block as text
from temporal_supervisor.standin.server.app import _BEGUN, _deltas
from temporal_supervisor.standin.server.app import _encoded as sse
from temporal_supervisor.supervision.base.json_object import JsonObject

__all__ = ["sse", "text"]


@dataclass
class Exchange:
    """One request, and the connection to answer it on."""

    path: str
    headers: dict[str, str]
    body: JsonObject
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    closed_by_client: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Scripted"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def until_client_leaves(self) -> None:
        """Sends nothing more; returns when the client has closed the connection."""
        self.silent.set()
        try:
            while await self.reader.read(1024):
                pass
        except ConnectionError:
            pass
        self.closed_by_client.set()


Reply = Callable[[Exchange], Awaitable[None]]


@dataclass
class ModelServer:
    """Answers every request with `reply`; `requests` are those that arrived."""

    url: str
    reply: Reply
    requests: list[Exchange] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def model_server(reply: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[ModelServer]:
    served = ModelServer("", reply)
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            while exchange := await _read_request(reader, writer):
                served.requests.append(exchange)
                served.arrived.set()
                await served.reply(exchange)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            handlers.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    served.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        for task in list(handlers):
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode().split("\r\n")[:-2]
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(first.split()[1], headers, json.loads(body or b"{}"), reader, writer)


def plain(status: int, body: str | JsonObject, content_type: str = "application/json", **headers: str) -> Reply:
    """A whole answer at once."""
    text = body if isinstance(body, str) else json.dumps(body)

    async def reply(exchange: Exchange) -> None:
        data = text.encode()
        await exchange.head(status, content_type=content_type, content_length=str(len(data)), **headers)
        await exchange.send(data)

    return reply


def error(status: int, type_: str, message: str = "told so", code: str | None = None, **headers: str) -> Reply:
    """An error in the provider's form."""
    return plain(status, error_body(type_, message, code), request_id="req_1", **headers)


def error_body(type_: str, message: str = "told so", code: str | None = None) -> JsonObject:
    told: JsonObject = {"type": type_, "message": message}
    if code:
        told["details"] = {"error_code": code}
    return {"type": "error", "error": told, "request_id": "req_1"}


def stream(*events: JsonObject, end: Reply | None = None) -> Reply:
    """A streamed answer; `end` takes the place of its proper end."""

    async def reply(exchange: Exchange) -> None:
        await exchange.head(content_type="text/event-stream", transfer_encoding="chunked", request_id="req_1")
        for event in events:
            await exchange.chunk(sse(event))
        await (end or eof)(exchange)

    return reply


async def eof(exchange: Exchange) -> None:
    """The proper end of a chunked body."""
    await exchange.send(b"0\r\n\r\n")


async def cut(exchange: Exchange) -> None:
    """A close in the middle of the body."""
    exchange.writer.close()


async def reset(exchange: Exchange) -> None:
    """Drops the connection with RST instead of FIN."""
    raw: socket.socket = exchange.writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.writer.transport.abort()


silence = Exchange.until_client_leaves


async def pings(exchange: Exchange) -> None:
    """Signs of life without content, for ever."""
    while True:
        await exchange.chunk(sse({"type": "ping"}))
        await asyncio.sleep(0.05)


USAGE: JsonObject = {
    "input_tokens": 10,
    "output_tokens": 1,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 20,
}


def start(**changes: Any) -> JsonObject:
    message: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }
    return {"type": "message_start", "message": {**message, **changes}}


def delta(index: int, part: JsonObject) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": part}


def block(index: int, content: JsonObject) -> list[JsonObject]:
    """The events of one content block, as the provider streams it."""
    return [
        {"type": "content_block_start", "index": index, "content_block": content | _BEGUN.get(content["type"], {})},
        *(delta(index, part) for part in _deltas(content, 8)),
        {"type": "content_block_stop", "index": index},
    ]


def finish(stop_reason: str | None = "end_turn", output_tokens: int = 42, **more: Any) -> list[JsonObject]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None, **more},
            "usage": {"output_tokens": output_tokens},
        },
        {"type": "message_stop"},
    ]


def message(*blocks: JsonObject, stop_reason: str | None = "end_turn", **more: Any) -> Reply:
    """A whole streamed answer with these content blocks."""
    events = [event for index, content in enumerate(blocks) for event in block(index, content)]
    return stream(start(), *events, *finish(stop_reason, **more))


def tool_use(id_: str, name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}
