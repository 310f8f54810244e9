"""The command `mcp` as processes that can be killed, or without one, and the SDK's own client to talk to it."""

import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import ElicitRequestFormParams, ElicitResult, Implementation
from temporalio.client import Client as TemporalClient

from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.mcp_server.mcp_serving import _PlainServer
from tests.serving import ROOT, address_of

NAME = "tester"
Form = Callable[[ElicitRequestFormParams], Awaitable[ElicitResult]]


@dataclass
class McpClient:
    """A connected client, and the process that serves it."""

    client: Client
    pid: int = 0

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Returns what a tool says."""
        done = await self.client.call_tool(tool, arguments)
        assert not done.is_error, done.content
        found: dict[str, Any] = done.structured_content
        return found

    async def text(self, tool: str, **arguments: Any) -> str:
        """Returns the text in which a tool says it."""
        done = await self.client.call_tool(tool, arguments)
        return "\n".join(part.text for part in done.content if part.type == "text")

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Returns the sentence with which a tool fails."""
        done = await self.client.call_tool(tool, arguments)
        assert done.is_error, done.structured_content
        (said,) = done.content
        assert said.type == "text"
        assert "\n" not in said.text
        return said.text

    async def until(self, run_id: str, *ids: str) -> dict[str, Any]:
        """Returns where a run stands once it asks all of these; without any once it has ended."""
        while True:
            standing = await self("wait", run_id=run_id, seconds=30)
            if {item["id"] for item in standing["asked"]} >= set(ids) and (ids or standing["state"] != "running"):
                return standing

    async def read(self, uri: str) -> str:
        """Returns the text of a resource."""
        (part,) = (await self.client.read_resource(uri)).contents
        return str(getattr(part, "text", None))

    def kill(self) -> None:
        """Ends the server's process as a crash would."""
        os.kill(self.pid, signal.SIGKILL)


def asking(form: Form | None, mode: str = "auto") -> dict[str, Any]:
    """Returns the options of a client whose person fills in forms like that."""

    async def fill(_: Any, params: Any) -> ElicitResult:
        assert form is not None
        return await form(params)

    return {
        "mode": mode,
        "client_info": Implementation(name=NAME, version="1"),
        "elicitation_callback": fill if form else None,
    }


@contextlib.asynccontextmanager
async def over_stdio(
    environ: Mapping[str, str], folder: Path, form: Form | None = None, mode: str = "auto"
) -> AsyncIterator[McpClient]:
    """Gives a client of a process of its own; it may be killed in the block."""
    pid, program = folder / "mcp.pid", f'exec "{sys.executable}" "{ROOT / "starter.py"}" mcp'
    started = StdioServerParameters(
        command="sh", args=["-c", f'echo $$ > "{pid}"; {program}'], env=dict(environ), cwd=folder
    )
    async with Client(stdio_client(started), **asking(form, mode)) as client:
        yield McpClient(client, int(pid.read_text()))


@contextlib.asynccontextmanager
async def in_process(environ: Mapping[str, str]) -> AsyncIterator[McpClient]:
    """Gives a client of the command's server in this process: for what does not depend on the wire."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        async with Client(_PlainServer(Access()), **asking(None)) as client:
            yield McpClient(client)


def mcp_environ(client: TemporalClient, artifacts: str, folder: Path) -> dict[str, str]:
    """Returns the environment of the command, for a server and its store."""
    return {
        "PATH": os.environ["PATH"],
        "TEMPORAL_ADDRESS": address_of(client),
        "SUPERVISOR_ARTIFACTS_URL": artifacts,
        "SUPERVISOR_CACHE_DIR": str(folder),
    }
