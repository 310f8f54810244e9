"""The endpoint `POST /v1/messages`: one request from its first to its last byte."""

import asyncio
import hashlib
import inspect
import json
import math
import secrets
import sys
from dataclasses import replace
from typing import Any

from starlette.types import Receive, Scope, Send

from standin.server import sse
from standin.server.api_reply import ApiReply, Brain, ErrorReply, limited, output_tokens
from standin.server.api_request import ApiRequest, BadRequest, Json, parse
from standin.server.api_rules import RequestBucket, RequestLimit
from standin.server.conversation_memory import ConversationMemory
from standin.server.delivery import Ending, fail, garbage, single, stream
from standin.server.exchange import CallLog, HttpExchange, disconnected, read
from standin.server.faults import BadConfig, Fault, FaultScript, altered, scripted
from standin.server.prompt_cache import PromptCache


class Endpoint:
    """The endpoint as an ASGI app, because a handler has to notice when its client leaves."""

    def __init__(self, brain: Brain, script: FaultScript, log: CallLog) -> None:
        self._brain = brain
        self._script = script
        self._log = log
        self._memory = ConversationMemory()
        self._cache = PromptCache()
        self._bucket = RequestBucket()
        self._count = 0

    def reset(self) -> None:
        """Forgets all conversations, the prompt cache and the requests that counted against a limit."""
        self._memory = ConversationMemory()
        self._cache = PromptCache()
        self._bucket = RequestBucket()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; the call log gets two lines, whatever happens."""
        self._count += 1
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        exchange = HttpExchange(self._count, headers, send)
        exchange.facts = {"call": exchange.call, "path": scope["path"], "n": self._count}
        body = await read(receive)
        if body is None:
            return
        exchange.body = body
        exchange.facts |= _first_facts(body)
        self._log.write("received", **exchange.facts)
        work = asyncio.create_task(self._answer(exchange))
        left = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            finished = work.done()
            for task in (work, left):
                task.cancel()
            await asyncio.gather(work, left, return_exceptions=True)
            self._log.write(work.result() if finished else "aborted", **exchange.facts)

    async def _answer(self, exchange: HttpExchange) -> Ending:
        """Runs one request; an unforeseen error becomes a 500 that names it."""
        try:
            return await self._reply(exchange)
        except ErrorReply as error:
            fault = Fault(status=error.status, type=error.type or None, message=error.message, headers=error.headers)
            return await fail(exchange, fault, error.status)
        except Exception as error:
            exchange.facts["error"] = f"{type(error).__name__}: {error}"
            if not exchange.started:
                await fail(exchange, Fault(message=f"the stand-in failed: {exchange.facts['error']}"), 500)
            return "failed"

    async def _reply(self, exchange: HttpExchange) -> Ending:
        self._refresh()
        config = self._script.config
        if config.require_key is not None and exchange.key != config.require_key:
            raise ErrorReply(401, "invalid API key")
        request = _request(exchange)
        self._keep_to(config.limit)
        fault = self._script.fault(exchange.call, request.model) or Fault()
        bill = self._cache.bill(request)  # on arrival: what others still write can't be read
        await asyncio.sleep((self._script.latency_ms + fault.delay_ms) / 1000)
        if fault.status is not None:
            return await fail(exchange, fault, fault.status)
        if fault.garbage is not None:
            return await garbage(exchange, fault.garbage)
        remembers = config.append_only and bool(exchange.workflow_id)
        if remembers and self._memory.changed(exchange.workflow_id, request):
            raise ErrorReply(400, "the conversation changed: an earlier message, the system text or the tools differ")
        window = config.window(request.model)
        if bill.total > window:
            raise ErrorReply(400, f"prompt is too long: {bill.total} tokens > {window} maximum")
        reply = altered(scripted(fault) or await self._think(request), fault)
        if reply.usage is None:
            reply = limited(reply, request.max_tokens)
            if output_tokens(reply) > window - bill.total:
                reply = replace(limited(reply, window - bill.total), stop_reason="model_context_window_exceeded")
        if remembers:
            self._memory.remember(exchange.workflow_id, request, reply)
        usage = reply.usage or bill.usage(output_tokens(reply))
        message_id = f"msg_{secrets.token_hex(12)}"
        exchange.facts |= {"message_id": message_id, "usage": usage}
        self._cache.begin_reply(bill)
        if request.stream:
            pause = fault.chunk_delay_ms if fault.chunk_delay_ms is not None else config.chunk_delay_ms
            events = sse.events(reply, message_id, request.model, usage, config.delta_chars)
            return await stream(exchange, events, fault, pause / 1000)
        return await single(exchange, sse.message(reply, message_id, request.model, usage), fault)

    def _keep_to(self, limit: RequestLimit | None) -> None:
        """Raises ErrorReply if the request exceeds the limit."""
        if limit and (wait := self._bucket.take(limit)):
            after = {"retry-after": str(math.ceil(wait))}
            raise ErrorReply(429, "this request would exceed the limit of requests", "rate_limit_error", after)

    async def _think(self, request: ApiRequest) -> ApiReply:
        reply = self._brain(request)
        return await reply if inspect.isawaitable(reply) else reply

    def _refresh(self) -> None:
        """A file that is just being written must not fail a request: the old configuration stays until it is whole."""
        try:
            self._script.refresh()
        except (BadConfig, OSError) as error:
            sys.stderr.write(f"stand-in model: the configuration is left as it was: {error}\n")


def _request(exchange: HttpExchange) -> ApiRequest:
    try:
        request = parse(json.loads(exchange.body))
    except (BadRequest, ValueError) as error:
        raise ErrorReply(400, str(error)) from error
    return replace(request, number=exchange.number, call=exchange.call, headers=exchange.headers)


def _first_facts(body: bytes) -> Json:
    try:
        model: Any = json.loads(body).get("model")
    except (ValueError, AttributeError):
        model = None
    return {"model": model, "prompt_sha256": hashlib.sha256(body).hexdigest()}
