"""The stand-in model as a real process, and the real client in front of it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from standin.server.app import TOKEN_VARIABLE

ROOT = Path(__file__).parents[2]
TOKEN = "s3same"
CONTROL = {"authorization": f"Bearer {TOKEN}"}
FOOTER = "_An extract by the stand-in model"


@dataclass
class Served:
    """A running stand-in."""

    url: str
    client: anthropic.AsyncAnthropic
    http: httpx2.AsyncClient
    process: asyncio.subprocess.Process
    ledger_file: Path

    async def config(self, **config: Any) -> None:
        """Replaces the configuration."""
        (await self.http.post("/config", json=config)).raise_for_status()

    async def fault(self, fault: dict[str, Any], **match: Any) -> None:
        """One rule."""
        await self.config(rules=[{**match, **fault}])

    async def ledger(self) -> list[dict[str, Any]]:
        """The ledger's entries."""
        return list((await self.http.get("/ledger")).json())

    async def ended_calls(self) -> list[dict[str, Any]]:
        """The ledger's entries, once all calls have ended: the last line is written after the last byte."""
        return list(await until(self.ledger, lambda entries: len(entries) % 2 == 0))

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
        env={**os.environ, TOKEN_VARIABLE: TOKEN},
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


def client(url: str, key: str = "none") -> anthropic.AsyncAnthropic:
    """The real client, without retries of its own and without the environment's proxy."""
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=httpx2.Timeout(10, connect=5))
    return anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0, http_client=http)


@pytest.fixture(scope="session")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    ledger = tmp_path_factory.mktemp("standin") / "ledger.jsonl"
    started, url = await start("--ledger", str(ledger))
    async with client(url) as api, httpx2.AsyncClient(base_url=url, headers=CONTROL, trust_env=False) as http:
        yield Served(url, api, http, started, ledger)
    await stop(started)


@pytest.fixture
async def served(process: Served) -> Served:
    """The process as if it had just started: calls that an earlier test left have ended."""
    await process.ended_calls()
    (await process.http.post("/reset")).raise_for_status()
    return process


async def until(read: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool], seconds: float = 5) -> Any:
    """Reads again and again until the value is the wanted one."""
    async with asyncio.timeout(seconds):
        while not wanted(value := await read()):
            await asyncio.sleep(0.01)
        return value


def text_of(message: anthropic.types.Message) -> str:
    """All text of a message."""
    return "".join(block.text for block in message.content if block.type == "text")


def json_of(message: anthropic.types.Message) -> Any:
    """The JSON of a message."""
    return json.loads(text_of(message))
