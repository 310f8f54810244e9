"""A Temporal server for cases: nearly half of their CPU is the server's."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client

from tests.serving import own_server

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files take no disk, on Linux."""


@asynccontextmanager
async def quick_server() -> AsyncIterator[Client]:
    """Gives a client of a server that nothing else uses."""
    # On a file: in memory a statement that was interrupted has once made all later ones fail (SQLite's error 9).
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        async with own_server(db=Path(folder) / "temporal.db") as client:
            yield client
