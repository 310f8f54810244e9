"""A Temporal server for cases: nearly half of their CPU is the server's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client

from tests.serving import light_folder, own_server


@asynccontextmanager
async def quick_server() -> AsyncIterator[Client]:
    """Gives a client of a server that nothing else uses."""
    # On a file: in memory a statement that was interrupted has once made all later ones fail (SQLite's error 9).
    with light_folder() as folder:
        async with own_server(db=folder / "temporal.db") as client:
            yield client
