"""The model server: `POST /v1/messages` from the first to the last byte.

It runs as a process or in an event loop.
"""

import asyncio
import inspect
import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from threading import Thread
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from temporal_supervisor.standin.server.api_reply import (
    ApiReply,
    Brain,
    ErrorReply,
    block_text,
    output_tokens,
    text_reply,
)
from temporal_supervisor.standin.server.api_request import parse
from temporal_supervisor.standin.server.faults import Fault, FaultScript
from temporal_supervisor.standin.server.prompt_cache import PromptCache
from temporal_supervisor.supervision.base.json_object import JsonObject

_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
    403: "permission_error", 404: "not_found_error", 408: "timeout_error", 409: "conflict_error",
    413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip
_BEGUN: dict[str, JsonObject] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
}

Entry = JsonObject
"""A line of the call log: a call was `received`, and later `answered`, `aborted` or `failed`.

`answered`: the last byte of a whole reply was sent; `aborted`: the client left before that. `at` is
in Unix seconds.
"""


@dataclass
class _Exchange:
    """One request on its way; `facts` are for the call log."""

    number: int
    send: Send
    facts: JsonObject
    started: bool = False

    async def start(self, status: int, content_type: str, headers: dict[str, str]) -> None:
        self.started = True
        self.facts["status"] = status
        own = {"content-type": content_type, "request-id": f"req_{self.number:06d}", **headers}
        encoded = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in own.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": more})


class BrainServer:
    """A brain's server: `script` says what its replies meet, `log` gets each entry of the call log.

    It is itself the endpoint of messages, as an ASGI app: a handler would not notice that its
    client leaves.
    """

    def __init__(
        self,
        brain: Brain,
        log: Callable[[Entry], object] = lambda _: None,
        script: FaultScript | None = None,
    ) -> None:
        self._brain = brain
        self._script = script or FaultScript()
        self._log = log
        self._count = 0
        self._cache = PromptCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; the call log gets two lines in any case."""
        self._count += 1
        request = Request(scope, receive)
        facts = {
            "call": unquote(request.headers.get("x-supervisor-call", "")),
            "path": scope["path"],
            "n": self._count,
        }
        exchange = _Exchange(self._count, send, facts)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        self._note("received", exchange)
        work = asyncio.create_task(self._answer(exchange, dict(request.headers), body))
        left = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            finished = work.done()
            for task in (work, left):
                task.cancel()
            await asyncio.gather(work, left, return_exceptions=True)
            self._note(work.result() if finished else "aborted", exchange)

    def _note(self, event: str, exchange: _Exchange) -> None:
        self._log({"at": time.time(), "event": event, **exchange.facts})

    async def _answer(self, exchange: _Exchange, headers: dict[str, str], body: bytes) -> str:
        """Returns the outcome of a request; an unforeseen error becomes a 500 that names it."""
        try:
            return await self._reply(exchange, headers, body)
        except ErrorReply as error:
            failure = error
        except Exception as error:
            exchange.facts["error"] = f"{type(error).__name__}: {error}"
            failure = ErrorReply(500, f"the stand-in failed: {exchange.facts['error']}")
        if not exchange.started:
            kind = failure.type or _TYPES.get(failure.status, "api_error")
            answer = {"type": "error", "error": {"type": kind, "message": failure.message}}
            await exchange.start(failure.status, "application/json", failure.headers)
            await exchange.write(json.dumps(answer).encode(), more=False)
        return "failed"

    async def _reply(self, exchange: _Exchange, headers: dict[str, str], body: bytes) -> str:
        config = self._script.config
        try:
            request = parse(json.loads(body))
        except (ValueError, LookupError, TypeError) as error:
            raise ErrorReply(400, f"{type(error).__name__}: {error}") from error
        request = replace(
            request, number=exchange.number, call=exchange.facts["call"], headers=headers
        )
        exchange.facts["model"] = request.model
        fault = self._script.fault(request.call)
        bill = self._cache.bill(request)  # on arrival: what others still write can't be read
        await asyncio.sleep((config.latency_ms + fault.delay_ms) / 1000)
        if fault.status is not None:
            raise ErrorReply(fault.status, fault.message, headers=fault.headers)
        if bill.total > config.window:
            raise ErrorReply(
                400, f"prompt is too long: {bill.total} tokens > {config.window} maximum"
            )
        made = self._brain(request) if fault.reply is None else text_reply(fault.reply)
        reply = await made if inspect.isawaitable(made) else made
        usage = reply.usage or bill.usage(output_tokens(reply))
        if ran := [block["name"] for block in reply.content if block["type"] == "server_tool_use"]:
            counts = {f"{name}_requests": ran.count(name) for name in ("web_search", "web_fetch")}
            usage = {"server_tool_use": counts, **usage}
        exchange.facts["usage"] = usage
        self._cache.begin_reply(bill)
        message = _message(reply, request.model, usage)
        if request.body.get("stream"):
            return await _stream(exchange, _events(reply, message, config.delta_chars), fault)
        await exchange.start(200, "application/json", {})
        await exchange.write(json.dumps(message).encode(), more=False)
        return "answered"


async def _stream(exchange: _Exchange, events: Iterator[JsonObject], fault: Fault) -> str:
    """Sends events, stalled where the fault says so."""
    await exchange.start(200, "text/event-stream; charset=utf-8", {"cache-control": "no-cache"})
    await exchange.write(b"")
    for sent, event in enumerate(events):
        if sent == fault.stall_after:
            await asyncio.Event().wait()  # until the client leaves
        if fault.chunk_delay_ms and event["type"] == "content_block_delta":
            await asyncio.sleep(fault.chunk_delay_ms / 1000)
        await exchange.write(_encoded(event), more=event["type"] != "message_stop")
    return "answered"


def _message(reply: ApiReply, model: str, usage: JsonObject) -> JsonObject:
    """Returns the reply as one object."""
    message: JsonObject = {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
    }
    ends = {
        "stop_reason": reply.stop_reason,
        "stop_sequence": None,
        "stop_details": reply.stop_details,
    }
    return message | ends | {"content": reply.content, "usage": usage}


def _events(reply: ApiReply, message: JsonObject, size: int) -> Iterator[JsonObject]:
    """Returns the reply as a stream's events, at most `size` characters of text in each."""
    ends = {name: message.pop(name) for name in ("stop_reason", "stop_sequence", "stop_details")}
    usage = message["usage"]
    begun: JsonObject = {
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message | begun}
    yield {"type": "ping"}
    for index, block in enumerate(reply.content):
        begun = block | _BEGUN.get(block["type"], {})
        if "citations" in begun:
            begun["citations"] = []
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in _deltas(block, size):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ends, "usage": usage}
    yield {"type": "message_stop"}


def _deltas(block: JsonObject, size: int) -> Iterator[JsonObject]:
    kinds = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
    kind, name = kinds.get(block["type"], ("input_json_delta", "partial_json"))
    if block["type"] in _BEGUN:
        text = block_text(block)
        yield from ({"type": kind, name: text[at : at + size]} for at in range(0, len(text), size))
    yield from (
        {"type": "citations_delta", "citation": citation}
        for citation in block.get("citations") or []
    )
    if block["type"] == "thinking":
        yield {"type": "signature_delta", "signature": block.get("signature", "")}


def _encoded(event: JsonObject) -> bytes:
    """Returns one event as bytes: ASCII, so that half of a surrogate pair arrives as written."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


async def _disconnected(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


_KEEP_ALIVE_SECONDS = 75  # above a client's pauses between turns: fewer lost idle connections
_SHUTDOWN_SECONDS = 2  # streams that are still open after SIGTERM are dropped then
_BACKLOG = 4096  # connections that come at once


class _Server(uvicorn.Server):
    """Leaves signals alone: the process decides which of them stop it."""

    def __init__(self, server: BrainServer, shutdown: int) -> None:
        super().__init__(
            uvicorn.Config(
                Starlette(routes=[Route("/v1/messages", server, methods=["POST"])]),
                log_level="critical",  # dropped connections are part of the script
                timeout_graceful_shutdown=shutdown,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str = "127.0.0.1", port: int = 0) -> tuple[socket.socket, str]:
    """Returns a listening socket and its URL. Raises OSError."""
    listener = socket.create_server((host, port), backlog=_BACKLOG)
    return listener, f"http://{host}:{listener.getsockname()[1]}"


def run(server: BrainServer, listener: socket.socket, url: str) -> None:
    """Serves until SIGTERM or Ctrl-C; prints the URL once connections are accepted."""

    async def serve() -> None:
        serving = _Server(server, _SHUTDOWN_SECONDS)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, serving.handle_exit, number, None)
        sys.stdout.write(f"stand-in model: {url}\n")
        sys.stdout.flush()
        await serving.serve(sockets=[listener])

    asyncio.run(serve())


def serve_beside(server: BrainServer) -> str:
    """Serves on a free port in a thread that ends with the process. Returns the URL."""
    listener, url = listen()  # it takes connections from here on
    process = _Server(server, shutdown=0)
    Thread(
        target=lambda: asyncio.run(process.serve(sockets=[listener])), name="standin", daemon=True
    ).start()
    return url


@asynccontextmanager
async def serving(server: BrainServer) -> AsyncIterator[str]:
    """Serves on a free port during an `async with` block, in this event loop; gives the URL."""
    listener, url = listen()
    process = _Server(server, shutdown=0)
    task = asyncio.create_task(process.serve(sockets=[listener]))
    try:
        yield url
    finally:
        process.should_exit = True
        await task
