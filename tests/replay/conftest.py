"""A server of this folder's own, as scenarios are recorded on: it suggests soon to continue as new."""

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from temporal_supervisor.runtime.settings import Settings
from tests.replay.scenarios import SMALL_HISTORIES
from tests.serving import own_server
from worker_main import serving


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[Client]:
    """A client of that server."""
    async with own_server(SMALL_HISTORIES) as connected:
        yield connected


@pytest.fixture(scope="module")
async def worker(client: Client, settings: Settings) -> AsyncIterator[None]:
    """The project's Workers for it."""
    async with serving(client, settings):
        yield
