"""More servers and Workers, for tests that need settings of their own."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
from pydantic import JsonValue
from temporalio.client import Client

import worker_main
from runtime import search_attributes
from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer
from runtime.settings import Settings
from runtime.workers import ALL_ROLES
from tests.conftest import LAB
from tests.scripted_model import ScriptedModel

Serving = Callable[..., contextlib.AbstractAsyncContextManager[Client]]


@pytest.fixture
def serving(model: ScriptedModel, tmp_path: Path) -> Serving:
    """Starts a server with that dynamic configuration, and Workers on it."""

    @contextlib.asynccontextmanager
    async def start(
        dynamic_config: Mapping[str, JsonValue] | None = None, artifacts: str | None = None
    ) -> AsyncIterator[Client]:
        settings = Settings(
            _env_file=None,
            artifacts_url=artifacts or str(tmp_path / "artifacts"),
            teams_dir=LAB,
            ANTHROPIC_BASE_URL=model.url,
        )
        async with EmbeddedServer(shared=False, headless=True, dynamic_config=dynamic_config) as server:
            client = await connect(address=server.address)
            attributes = await search_attributes.ensure(client)
            async with contextlib.AsyncExitStack() as stack:
                for worker in worker_main.compose(client, settings, list(ALL_ROLES), attributes):
                    await stack.enter_async_context(worker)
                yield client

    return start
