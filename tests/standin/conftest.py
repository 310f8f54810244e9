"""The stand-in model, served here, and the real client in front of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import pytest

from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.app import BrainServer, serving
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig

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


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A new one, in this process."""
    script = FaultScript()
    real = anthropic.DefaultAsyncHttpxClient(trust_env=False, timeout=httpx2.Timeout(10, connect=5))
    async with (
        serving(BrainServer(think, script=script)) as url,
        anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0, http_client=real) as api,
        httpx2.AsyncClient(base_url=url, trust_env=False) as http,
    ):
        yield Served(url, api, http, script)


def text_of(message: anthropic.types.Message) -> str:
    """All text of a message."""
    return "".join(block.text for block in message.content if block.type == "text")
