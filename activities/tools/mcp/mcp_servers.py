"""MCP servers from the Worker's side: each has a child process while it is in use."""

import asyncio
import base64
import json
import os
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from activities.bounded.bounded_child import Child
from activities.heartbeat import set_details
from activities.tools.files import open_to_others
from activities.tools.mcp.pins import Pinned, pin_command, read_pins
from activities.tools.secrets import Secrets
from activities.tools.tool import (
    Arguments,
    NewArtifact,
    Tool,
    ToolContext,
    ToolMisuse,
    ToolOutput,
    ToolSource,
)
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import cut, one_line
from temporal_supervisor.supervision.contract.team import (
    McpServer,
    McpTool,
    server_tool,
    with_secrets,
)

_START = timedelta(seconds=60)  # of a server: some are fetched by their command first
_PATIENCE = timedelta(seconds=5)  # beyond a call's timeout: then its process hangs
_END = timedelta(seconds=5)  # for a process to end by itself with its server
_IDLE = timedelta(minutes=10)  # a server that keeps something in memory may be needed again soon
_AT_ONCE = 8  # calls of one server: a run of 200 agents does not flood it
_LINE_BYTES = 16 * 1024 * 1024  # of one answer: two messages of a server
_QUESTIONS = 5  # of a server about one call
_PROGRAM = "activities.tools.mcp.mcp_process"
_CHECK_FIRST = "Its outcome is unknown. Check whether it took effect before you try it again."


class McpFailed(Exception):
    """A request without an answer; `sent` is True if it may have reached the server."""

    def __init__(self, problem: str, *, sent: bool = False) -> None:
        super().__init__(problem)
        self.sent = sent


class McpTools(ToolSource):
    """The source of the pinned tools of one server that a team file lists."""

    def __init__(self, name: str, connection: "McpConnection") -> None:
        self._name = name
        self._connection = connection
        self._timeout = timedelta(seconds=connection.server.timeout)

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools without asking the server.

        Raises ValueError for tools that are not pinned.
        """
        folder = self._connection.folder
        listed = self._connection.server.tools
        all_pins = await asyncio.to_thread(read_pins, folder)
        pins = all_pins.get(self._name, {})
        missing = [name for name in listed if name not in pins]
        if missing:
            names = one_line(", ".join(missing), limits.PARAGRAPH_BYTES)
            helps = f"{pin_command(folder)} shows what the server says, and pins it"
            raise ValueError(f"not pinned: {names}. {helps}")
        return [self._tool(pins[name], rights) for name, rights in listed.items()]

    def _tool(self, pinned: Pinned, rights: McpTool) -> Tool[Any]:
        tool = Tool(
            server_tool(self._name, pinned.name),
            "",
            Arguments,
            partial(self._call_tool, rights.effects != "read"),
            outside=True,
            server=self._connection.server.remote_host,
            **rights.as_tool_fields,
            timeout_seconds=(self._timeout + 2 * _PATIENCE).total_seconds(),
        )
        return tool.as_pinned(pinned)

    async def _call_tool(
        self,
        has_effects: bool,
        arguments: object,
        context: ToolContext,
    ) -> ToolOutput:
        assert context.pinned is not None
        server = f"MCP server '{self._name}'"
        question = {
            "tool": context.pinned.model_dump(),
            "arguments": arguments,
            "replies": context.replies,
            "effects": has_effects,
            "key": context.idempotency_key,
            "timeout": self._timeout.total_seconds(),
        }
        try:
            answer = await self._connection.request(question, self._timeout)
        except McpFailed as failed:
            problem = f"{server}: {str(failed).rstrip('.')}."
            if has_effects and failed.sent:
                problem = f"{problem} {_CHECK_FIRST}"
            raise ToolMisuse(problem) from None
        if "asks" in answer:
            if len(context.replies) >= _QUESTIONS:
                raise ToolMisuse(f"{server} asks more than {_QUESTIONS} questions about this call.")
            asked = f"{server} asks before it does {context.pinned.name}: {answer['text']}"
            return ToolOutput(asked, asks=answer["asks"], choices=answer["choices"])
        if answer["is_error"]:
            raise ToolMisuse(answer["text"] or "the tool failed, and says nothing")
        files = []
        for file in answer["files"]:
            data = base64.b64decode(file["data"])
            files.append(NewArtifact(file["name"], file["media_type"], data))
        return ToolOutput(answer["text"], [f"MCP server {self._name}"], files)


class McpConnection:
    """The connection to one server through a child process, which ends once it is idle.

    A process that ended is replaced at the next request. All end with the event loop.
    """

    def __init__(
        self,
        folder: Path,
        server: McpServer,
        secrets: Secrets,
        memory_mib: int,
    ) -> None:
        self.folder = folder
        self.server = server
        self._secrets = secrets
        self._memory_mib = memory_mib
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._child: asyncio.Task[_ServerProcess] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._open = 0  # requests in flight

    async def tools(self) -> list[Pinned]:
        """Returns the current definitions of all tools of the server. Raises McpFailed."""
        answer = await self.request({}, _START)
        return [Pinned.model_validate(tool) for tool in answer["tools"]]

    async def request(self, question: JsonObject, time: timedelta) -> JsonObject:
        """Returns the server's answer, for which it may take `time`. Raises McpFailed."""
        async with self._slots:
            self._open += 1
            try:
                child = await self._ready()
                return await child.request(question, time)
            finally:
                self._open -= 1
                if self._idle:
                    self._idle.cancel()
                loop = asyncio.get_running_loop()
                self._idle = loop.call_later(_IDLE.total_seconds(), self.close)

    def close(self) -> None:
        """Ends the process if it is idle."""
        if not self._open and self._child and self._child.done() and not self._child.exception():
            self._child.result().end()

    async def _ready(self) -> "_ServerProcess":
        """Returns the running process, once its server is connected. Raises McpFailed."""
        if self._child is None or _has_ended(self._child):
            self._child = asyncio.create_task(self._start_process())
            # If nobody waits for it any longer, its exception is nobody's, too.
            self._child.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Calls that come meanwhile wait for the same start, which outlives the call that began it.
        return await asyncio.shield(self._child)

    async def _start_process(self) -> "_ServerProcess":
        server = self.server
        why = open_to_others(self.folder / "team.toml") if server.command else None
        if why:
            raise McpFailed(f"its command is not run: {why}")
        try:
            secrets = {name: self._secrets.value(name) for name in server.secrets}
        except ValueError as error:
            raise McpFailed(str(error)) from None
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        child = await asyncio.to_thread(_ServerProcess, self.folder, {**kept, **secrets})
        setup = {
            **server.model_dump(include={"command", "args", "url"}),
            "headers": {name: with_secrets(text, secrets) for name, text in server.headers.items()},
            "secrets": [*secrets],
            "pin": pin_command(self.folder),
            "memory_mib": self._memory_mib,
        }
        await child.start(setup)
        return child


def _has_ended(child: "asyncio.Task[_ServerProcess]") -> bool:
    """True if a process did not start, or answers no more."""
    return child.done() and (child.exception() is not None or child.result().ended)


class _ServerProcess:
    """A child process. The server is in its session, so that one signal ends both."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._child = Child(_PROGRAM, environment=environment, folder=folder)
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._progress: dict[int, str] = {}
        self._numbers = count()
        self._reason = "its process ended"
        self.ended = False  # True once it answers no more

    async def start(self, setup: JsonObject) -> None:
        """Returns once the server is connected. Raises McpFailed."""
        connection = asyncio.open_connection(sock=self._child.socket, limit=_LINE_BYTES)
        reader, self._writer = await connection
        self._reading = asyncio.create_task(self._read_replies(reader))
        try:
            await self.request(setup, _START)
        except McpFailed as failed:
            raise McpFailed(f"it does not start: {failed}") from None

    async def request(self, question: JsonObject, time: timedelta) -> JsonObject:
        """Returns the answer to a request. The first one connects the server. Raises McpFailed."""
        number = next(self._numbers)
        seconds = (time + _PATIENCE).total_seconds()
        self._waiting[number] = asyncio.get_running_loop().create_future()

        def progress_so_far() -> JsonObject:
            return {"progress": self._progress[number]} if number in self._progress else {}

        set_details(progress_so_far)
        self._send_line({"id": number, **question})
        try:
            answer = await asyncio.wait_for(self._waiting[number], seconds)
        except TimeoutError:
            self._reason = f"no answer within {seconds:g} s"
            self.end()
            raise McpFailed(self._reason, sent=True) from None
        except asyncio.CancelledError:
            self._send_line({"cancel": number})
            raise
        finally:
            del self._waiting[number]
            self._progress.pop(number, None)
        if "problem" in answer:
            raise McpFailed(answer["problem"], sent=answer["sent"])
        return answer

    def end(self) -> None:
        """Ends the process and its server."""
        self.ended = True
        self._reading.cancel()

    def _send_line(self, message: JsonObject) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _read_replies(self, reader: asyncio.StreamReader) -> None:
        try:
            try:
                while line := await reader.readline():
                    self._read_reply(json.loads(line))
            finally:
                self.ended = True
                for waiting in self._waiting.values():
                    if not waiting.done():
                        waiting.set_exception(McpFailed(self._reason, sent=True))
                # With this the process ends by itself, and all that its server started.
                self._writer.write_eof()
                await asyncio.wait_for(reader.read(), _END.total_seconds())
        except (OSError, ValueError):
            pass
        finally:
            self._writer.close()
            self._child.kill()
            await asyncio.to_thread(self._child.wait)

    def _read_reply(self, message: JsonObject) -> None:
        if "end" in message:
            self._reason = message["end"]
            return
        number = message["id"]
        waiting = self._waiting.get(number)
        if waiting is None:
            return  # late: its call has ended
        if "progress" in message:
            self._progress[number] = cut(message["progress"], limits.HEARTBEAT_TAIL_CHARS)
        elif not waiting.done():
            waiting.set_result(message)
