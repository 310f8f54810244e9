"""The endpoint `POST /v1/messages`: one request from its first to its last byte."""

import asyncio
import hashlib
import json
import secrets
import sys
from typing import Any

from starlette.types import Receive, Scope, Send

from standin import sse
from standin.brain import think
from standin.delivery import Outcome, error_type, fail, garbage, single, stream
from standin.exchange import Exchange, gone, read
from standin.faults import BadConfig, Fault, Script, parse_fault
from standin.ledger import Ledger
from standin.memory import Memory
from standin.reply_script import altered, limited, output_tokens, scripted
from standin.request import BadRequest, Json, Request, parse


class Refused(Exception):
    """A reply that is an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Messages:
    """The endpoint as an ASGI app, because a handler has to notice when its client leaves."""

    def __init__(self, script: Script, memory: Memory, ledger: Ledger) -> None:
        self.script = script
        self.memory = memory
        self.ledger = ledger
        self._count = 0

    def reset(self) -> None:
        """Forgets all conversations."""
        self.memory = Memory()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; the ledger gets two lines, whatever happens."""
        self._count += 1
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        exchange = Exchange(self._count, headers, send)
        exchange.facts = {"call": exchange.call, "path": scope["path"], "n": self._count}
        body = await read(receive)
        if body is None:
            return
        exchange.body = body
        exchange.facts |= _first_facts(body)
        self.ledger.write("received", **exchange.facts)
        work = asyncio.create_task(self._answer(exchange))
        left = asyncio.create_task(gone(receive))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            finished = work.done()
            for task in (work, left):
                task.cancel()
            await asyncio.gather(work, left, return_exceptions=True)
            self.ledger.write(work.result() if finished else "aborted", **exchange.facts)

    async def _answer(self, exchange: Exchange) -> Outcome:
        """Runs one request; unforeseen errors become a 500 that names them."""
        try:
            return await self._reply(exchange)
        except Refused as refused:
            body = sse.error(error_type(refused.status), refused.text, f"req_{exchange.number:06d}")
            await exchange.whole(refused.status, json.dumps(body).encode())
        except Exception as error:
            exchange.facts["error"] = f"{type(error).__name__}: {error}"
            if not exchange.started:
                body = sse.error("api_error", f"the stand-in failed: {exchange.facts['error']}", "")
                await exchange.whole(500, json.dumps(body).encode())
        return "failed"

    async def _reply(self, exchange: Exchange) -> Outcome:
        self._refresh()
        config = self.script.config
        if config.require_key is not None and exchange.key != config.require_key:
            raise Refused(401, "invalid API key")
        try:
            request = parse(json.loads(exchange.body))
        except (BadRequest, ValueError) as error:
            raise Refused(400, str(error)) from error
        fault = self._fault(exchange, request)
        await asyncio.sleep((self.script.latency_ms + fault.delay_ms) / 1000)
        if fault.status is not None:
            return await fail(exchange, fault, fault.status)
        if fault.garbage is not None:
            return await garbage(exchange, fault.garbage)
        if config.append_only and exchange.workflow_id and self.memory.changed(exchange.workflow_id, request):
            raise Refused(400, "the conversation changed: an earlier message, the system text or the tools differ")
        reply = limited(altered(scripted(fault) or think(request), fault), request.max_tokens)
        if exchange.workflow_id:
            self.memory.remember(exchange.workflow_id, request, reply)
        usage = reply.usage or self.memory.usage(request, output_tokens(reply))
        message_id = f"msg_{secrets.token_hex(12)}"
        exchange.facts |= {"message_id": message_id, "usage": usage}
        if request.stream:
            pause = fault.chunk_delay_ms if fault.chunk_delay_ms is not None else config.chunk_delay_ms
            return await stream(exchange, sse.events(reply, message_id, request.model, usage), fault, pause / 1000)
        return await single(exchange, sse.message(reply, message_id, request.model, usage), fault)

    def _refresh(self) -> None:
        """A file that is just being written must not fail a request: the old configuration stays until it is whole."""
        try:
            self.script.refresh()
        except (BadConfig, OSError) as error:
            sys.stderr.write(f"stand-in model: the configuration is left as it was: {error}\n")

    def _fault(self, exchange: Exchange, request: Request) -> Fault:
        by_rule = self.script.fault(exchange.call, request.model)
        if header := exchange.headers.get("x-standin-fault"):
            try:
                return parse_fault(header)
            except BadConfig as error:
                raise Refused(400, f"x-standin-fault: {error}") from error
        return by_rule or Fault()


def _first_facts(body: bytes) -> Json:
    try:
        model: Any = json.loads(body).get("model")
    except (ValueError, AttributeError):
        model = None
    return {"model": model, "prompt_sha256": hashlib.sha256(body).hexdigest()}
