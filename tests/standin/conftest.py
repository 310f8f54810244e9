"""The stand-in model, served here or as a process, and the real client in front of it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from standin.extract.kind_of_call import think
from standin.server.app import BrainServer
from standin.server.call_log import CallLog
from standin.server.faults import FaultScript, ServerConfig
from standin.server.serving import serving

ROOT = Path(__file__).parents[2]
FOOTER = "_An extract by the stand-in model"


@dataclass
class Served:
    """A running stand-in."""

    url: str
    client: anthropic.AsyncAnthropic
    http: httpx2.AsyncClient
    script: FaultScript

    async def config(self, **config: Any) -> None:
        """Replaces the configuration."""
        self.script.replace(ServerConfig.model_validate(config))

    async def ask(self, text: str = "Say something.", **more: Any) -> anthropic.types.Message:
        """One streamed call."""
        body: dict[str, Any] = {"model": "claude-haiku-5-5", "max_tokens": 2000, **more}
        body.setdefault("messages", [{"role": "user", "content": text}])
        async with self.client.messages.stream(**body) as stream:
            return await stream.get_final_message()


async def start(*arguments: str) -> tuple[asyncio.subprocess.Process, str]:
    """Starts `python -m standin`; the process and the address that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "standin", "--port", "0", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
    assert line.startswith("stand-in model: http://127.0.0.1:"), line
    return process, line.split(": ", 1)[1].strip()


async def stop(process: asyncio.subprocess.Process) -> int:
    """SIGTERM, and the exit status."""
    if process.returncode is None:
        os.kill(process.pid, signal.SIGTERM)
    return await asyncio.wait_for(process.wait(), 10)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A new one, in this process."""
    script = FaultScript()
    real = anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=httpx2.Timeout(10, connect=5))
    async with (
        serving(BrainServer(think, CallLog(), script)) as url,
        anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0, http_client=real) as api,
        httpx2.AsyncClient(base_url=url, trust_env=False) as http,
    ):
        yield Served(url, api, http, script)


def text_of(message: anthropic.types.Message) -> str:
    """All text of a message."""
    return "".join(block.text for block in message.content if block.type == "text")
