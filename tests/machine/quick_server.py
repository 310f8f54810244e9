"""A Temporal server for cases: nearly half of their CPU is the server's."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client

from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer

MEMORY = Path("/dev/shm")
"""Where files take no disk, on Linux."""

_COLLECTS_SELDOM = ("GOGC", "400")
"""Garbage is collected at five times what is in use: a server that never did took a seventh less CPU."""


@asynccontextmanager
async def quick_server() -> AsyncIterator[Client]:
    """Gives a client of a server that nothing else uses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*_COLLECTS_SELDOM)
        # On a file: in memory a statement that was interrupted has once made all later ones fail (SQLite's error 9).
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            async with EmbeddedServer(shared=False, headless=True, db=Path(folder) / "temporal.db") as server:
                yield await connect(address=server.address)
