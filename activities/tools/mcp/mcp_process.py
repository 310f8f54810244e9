"""The program of the child process that talks to one MCP server. Nothing else imports the SDK.

It reads one JSON line for each request and writes one for each answer, in any order: see
`mcp_servers`. It limits its own memory and the server's, ends with its standard input, and ends
everything that the server started. It removes the server's secrets from all that it passes on.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn, cast

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from activities.bounded.own_bounds import bound_memory, data_bytes, leave_no_core
from activities.tools.mcp.mcp_forms import Elicitation, complaint_about, result_json
from activities.tools.mcp.pins import Pinned
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import clean, one_line, quoted
from temporal_supervisor.supervision.base.trust import Credentials

Pipes = tuple[asyncio.StreamWriter, asyncio.StreamReader, asyncio.StreamReader]

FRAME_BYTES = 8 * 1024 * 1024  # of one message of a server: a picture, or a large file as text
_MEMORY = 256 * 1024 * 1024  # of this process beside its libraries: some messages at once
_WATCH_SECONDS = 0.5  # between two looks at the memory that a server's processes hold together
_PROCESSES = 100  # of one server: a browser has some twenty
_NO_MESSAGES = 1000  # lines of a server that are none: a greeting is read over, a flood is not
_LIST_SECONDS = 10  # a server that is alive lists its tools in milliseconds
_LISTED_FRESH = 60  # seconds for which a list of definitions counts, but for calls with effects
_END_SECONDS = 2  # for a server to end by itself
_PROGRESS_EVERY = 0.5  # seconds: a heartbeat takes one a second
_ERROR_CHARS = 600
_LEAST_SECRET = 6  # characters: shorter values are ordinary words, such as `true`
# Errors of calls that a server did not begin.
_REJECTED = (types.METHOD_NOT_FOUND, types.INVALID_PARAMS)
_SUBREAPER = 36  # of prctl: what a dead process leaves behind becomes a child of this one
_KEY = "temporal-supervisor/idempotency-key"

_call: ContextVar[int | None] = ContextVar("_call", default=None)
"""The call that a server asks about with its result.

One before 2026 asks in the middle of some call.
"""


class _Problem(Exception):
    """A call without a result. `sent` is False if it did not reach the server."""

    def __init__(self, text: str, *, sent: bool = False) -> None:
        super().__init__(text)
        self.sent = sent


class _Process:
    """The requests to this process and its answers."""

    def __init__(self, setup: JsonObject, writer: asyncio.StreamWriter) -> None:
        self.setup = setup
        self._writer = writer
        self._secrets = [os.environ[name] for name in setup["secrets"]]
        self._withheld = Credentials(self._secrets, least=_LEAST_SECRET)
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._live: list[Pinned] = []
        self._listed = -float("inf")
        self.client: Client
        # Of people, by the question, to the calls in flight.
        self._replies: dict[int, dict[str, str]] = {}
        self._asked: dict[int, JsonObject] = {}
        self.stderr = ""

    def send(self, message: JsonObject) -> None:
        line = self._withheld.withheld(json.dumps(message))
        self._writer.write(line.encode() + b"\n")

    def give_up(self, reason: str) -> NoReturn:
        """Ends this process and all that the server started; the Worker gets the reason."""
        last = one_line(clean(self.stderr.strip().rpartition("\n")[2]), _ERROR_CHARS)
        line = self._withheld.withheld(json.dumps({"end": f"{reason}: {last}" if last else reason}))
        with contextlib.suppress(OSError):
            os.set_blocking(1, True)
            os.write(1, line.encode() + b"\n")
        end()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Answers requests until standard input ends."""
        while line := await reader.readline():
            asked = json.loads(line)
            if "cancel" in asked:
                call = self._calls.get(asked["cancel"])
                if call is not None:
                    call.cancel()
                continue
            number = asked["id"]
            self._calls[number] = asyncio.create_task(self._answer(number, asked))

    async def _answer(self, number: int, asked: JsonObject) -> None:
        try:
            if "tool" in asked:
                answer = await self._call(number, asked)
            else:
                await self._list_tools()
                answer = {"tools": [tool.model_dump() for tool in self._live]}
        except _Problem as problem:
            answer = {"problem": str(problem), "sent": problem.sent}
        except MemoryError:
            self.give_up(f"its answer needs more than {_MEMORY >> 20} MiB of memory")
        except Exception as error:
            answer = {"problem": f"its answer can't be used: {error_line(error)}", "sent": True}
        finally:
            self._calls.pop(number, None)
        self.send({"id": number, **answer})

    async def _checked_tool(self, asked: JsonObject) -> str:
        """Returns the name of the called tool. Raises _Problem if the call must not be sent."""
        pinned = Pinned.model_validate(asked["tool"])
        given = asked["arguments"]
        complaint = complaint_about(pinned.input_schema, given)
        if complaint and isinstance(given, dict):
            # Models write null for what they leave out.
            needed = pinned.input_schema.get("required", [])
            null = [name for name, value in given.items() if value is None and name not in needed]
            asked["arguments"] = {name: given[name] for name in given if name not in null}
            complaint = complaint_about(pinned.input_schema, asked["arguments"])
        if complaint:
            raise _Problem(f"Wrong arguments: {complaint}")
        if asked["effects"] or time.monotonic() - self._listed > _LISTED_FRESH:
            await self._list_tools()
        live = [tool for tool in self._live if tool.name == pinned.name]
        if not live:
            raise _Problem("the server has this tool no longer")
        if len(live) > 1:
            raise _Problem("the server has two tools of this name")
        if live[0].sha256 != pinned.sha256:
            changed = "the server has changed the definition of this tool since it was pinned"
            again = f"{self.setup['pin']} shows how, and pins the new one for later runs"
            raise _Problem(f"{changed}: {again}")
        return pinned.name

    async def _call(self, number: int, asked: JsonObject) -> JsonObject:
        tool = await self._checked_tool(asked)
        told = 0.0

        async def report_progress(
            progress: float,
            total: float | None,
            message: str | None,
        ) -> None:
            nonlocal told
            if time.monotonic() - told >= _PROGRESS_EVERY:
                told = time.monotonic()
                share = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
                words = one_line(clean(f"{share} {message or ''}"), _ERROR_CHARS)
                self.send({"id": number, "progress": words})

        key = cast(types.RequestParamsMeta, {_KEY: asked["key"]})
        self._replies[number] = asked["replies"]
        try:
            _call.set(number)
            async with asyncio.timeout(asked["timeout"]):
                result = await self.client.call_tool(
                    tool,
                    asked["arguments"],
                    progress_callback=report_progress,
                    meta=key if asked["effects"] else None,
                )
        except TimeoutError:
            # A server that hangs does not list its tools before the next call.
            self._listed = -float("inf")
            late = f"the server did not answer within {asked['timeout']:g} s"
            raise _Problem(late, sent=True) from None
        except MCPError as error:
            self._listed = -float("inf")
            if number not in self._asked:
                words = f"the server says: {one_line(clean(error.message), _ERROR_CHARS)}"
                raise _Problem(words, sent=error.code not in _REJECTED) from None
        finally:
            del self._replies[number]
            question = self._asked.pop(number, None)
        if question:
            return question
        secrets = [secret for secret in self._secrets if len(secret) >= _LEAST_SECRET]
        return result_json(result, tool, secrets)

    async def _list_tools(self) -> None:
        """Updates the definitions. A server that does not list them is ended.

        Another process of it may work.
        """
        live: list[Pinned] = []
        cursor = None
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                while True:
                    page = await self.client.list_tools(cursor=cursor)
                    for tool in page.tools:
                        about = tool.description or ""
                        schema = tool.input_schema
                        live.append(Pinned(name=tool.name, description=about, input_schema=schema))
                    cursor = page.next_cursor
                    if not cursor:
                        break
        except TimeoutError:
            if self._replies:  # a server that does one thing at a time is not ended because it does
                busy = "the server is busy with other calls, so this one was not made"
                raise _Problem(busy) from None
            self.give_up(f"it does not list its tools within {_LIST_SECONDS} s")
        except Exception as error:
            self.give_up(f"it does not list its tools: {error_line(error)}")
        self._live = live
        self._listed = time.monotonic()

    async def elicited(
        self,
        context: object,
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """Returns a person's reply; without one the call ends, to be repeated with the reply."""
        only = next(iter(self._replies)) if len(self._replies) == 1 else None
        number = _call.get() or only
        if number is None or not isinstance(params, types.ElicitRequestFormParams):
            return types.ElicitResult(action="decline")
        question = Elicitation(clean(params.message), dict(params.requested_schema))
        reply = self._replies[number].get(question.key)
        content = None if reply is None else question.content(reply)
        if content is not None:
            return types.ElicitResult(action="accept", content=content)
        misfit = "" if reply is None else f"{quoted(reply)} does not fit. "
        asked = {"asks": question.key, "text": misfit + question.text, "choices": question.choices}
        self._asked.setdefault(number, asked)
        refused = "a person is asked, and the call made again"
        return types.ErrorData(code=types.INVALID_REQUEST, message=refused)

    @contextlib.asynccontextmanager
    async def stdio(self) -> AsyncIterator[tuple[Any, Any]]:
        """Runs the server as a command.

        Unlike the SDK's own transport it limits messages and keeps one process group.
        """
        setup = self.setup
        memory = setup["memory_mib"] << 20
        own = data_bytes() + _MEMORY
        bound_memory(memory, max(memory, own))  # of the server, which is started with it
        try:
            process = await asyncio.create_subprocess_exec(
                setup["command"],
                *setup["args"],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=FRAME_BYTES,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self.give_up(f"'{setup['command']}' can't be run: {reason}")
        bound_memory(own, max(memory, own))
        stdin, stdout, stderr = cast(Pipes, (process.stdin, process.stdout, process.stderr))
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        jobs = (
            self._read_messages(stdout, incoming),
            self._write(stdin, outgoing),
            self._listen(stderr),
            self._watch(memory),
        )
        work = asyncio.gather(*jobs)
        try:
            yield read, write
        finally:
            stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _END_SECONDS)
            work.cancel()

    async def _watch(self, memory: int) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            processes = descendants()
            if len(processes) > _PROCESSES:
                self.give_up(f"it has more than {_PROCESSES} processes")
            if sum(map(own_bytes, processes)) > memory:
                self.give_up(f"it needs more than {memory >> 20} MiB of memory")

    async def _read_messages(self, stdout: asyncio.StreamReader, incoming: Any) -> None:
        ignored = 0
        while True:
            try:
                line = await stdout.readline()
            except ValueError:
                self.give_up(f"it sent a message of more than {FRAME_BYTES >> 20} MiB")
            except MemoryError:
                self.give_up(f"it needs more than {_MEMORY >> 20} MiB of memory here")
            if not line:
                await asyncio.sleep(0.05)  # its last words on the other pipe
                self.give_up("its process ended")
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                ignored += 1
                if line.lstrip().startswith(b"{"):
                    self.give_up("it sent a message that is not JSON-RPC")
                if ignored > _NO_MESSAGES:
                    self.give_up("it writes what is not MCP to its standard output")
                continue
            await incoming.send(SessionMessage(message))

    async def _write(self, stdin: asyncio.StreamWriter, outgoing: Any) -> None:
        async for item in outgoing:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(line.encode() + b"\n")
            with contextlib.suppress(ConnectionError):  # its end is read from the other pipe
                await stdin.drain()

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(4096):
            self.stderr = (self.stderr + chunk.decode("utf-8", "replace"))[-4096:]


def error_line(error: BaseException) -> str:
    """Returns an error on one line; of a group the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = error.message if isinstance(error, MCPError) else f"{type(error).__name__} {error}"
    return one_line(clean(text), _ERROR_CHARS)


def end() -> NoReturn:
    """Ends this process and all its descendants, including orphans that it has inherited."""
    for _ in range(1000):
        below = children()
        for pid in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not below:
            break
        time.sleep(0.005)
    os._exit(0)


def children(parent: int | str = "self") -> list[int]:
    """Returns the child processes of a process; none on systems that do not list them."""
    found: list[str] = []
    for file in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread has ended
            found += file.read_text().split()
    return [int(pid) for pid in found]


def descendants() -> list[int]:
    """Returns all processes below this one."""
    found = children()
    for pid in found:  # grows meanwhile
        found += children(pid)
    return found


def own_bytes(pid: int) -> int:
    """Returns the memory of a process without mapped files, in bytes; 0 if it has ended."""
    with contextlib.suppress(OSError, ValueError):
        _, resident, mapped, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
        return (resident - mapped) * resource.getpagesize()
    return 0


async def _main() -> None:
    requests = socket.socket(fileno=0)
    reader, writer = await asyncio.open_connection(sock=requests, limit=2 * FRAME_BYTES)
    process = _Process(json.loads(await reader.readline()), writer)
    setup = process.setup
    try:
        async with contextlib.AsyncExitStack() as stack:
            if setup["url"]:
                opened = create_mcp_http_client(headers=setup["headers"])
                transport = streamable_http_client(
                    setup["url"],
                    http_client=await stack.enter_async_context(opened),
                    max_sse_event_size=FRAME_BYTES,
                )
                bound_memory(data_bytes() + _MEMORY)
            else:
                transport = process.stdio()
            client = Client(transport, elicitation_callback=process.elicited, cache=None)
            process.client = await stack.enter_async_context(client)
            process.send({"id": setup["id"]})
            await process.serve(reader)
            asyncio.get_running_loop().call_later(_END_SECONDS + 1, end)
    except MemoryError:
        process.give_up(f"its answers need more than {_MEMORY >> 20} MiB of memory")
    except BaseException as error:
        process.give_up(f"the connection failed: {error_line(error)}")


def main() -> None:
    """Serves until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    leave_no_core()
    try:
        asyncio.run(_main())
    finally:
        end()
