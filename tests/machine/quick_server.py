"""A Temporal server for cases, and what it costs: nearly half of their CPU is the server's."""

import os
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
async def quick_server() -> AsyncIterator[tuple[Client, int]]:
    """Gives a client of a server that nothing else uses, and the server's process id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*_COLLECTS_SELDOM)
        # On a file: in memory a statement that was interrupted has once made all later ones fail (SQLite's error 9).
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            async with EmbeddedServer(shared=False, headless=True, db=Path(folder) / "temporal.db") as server:
                yield await connect(address=server.address), server.pid


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of a process; 0 where that can't be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
