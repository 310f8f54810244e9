"""A Temporal server for cases, in memory, and what it costs: nearly half of their CPU is the server's."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client

from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer

_COLLECTS_SELDOM = ("GOGC", "400")
"""Garbage is collected at five times what is in use: a server that never did took a seventh less CPU."""


@asynccontextmanager
async def quick_server() -> AsyncIterator[tuple[Client, int]]:
    """Gives a client of a server that nothing else uses, and the server's process id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*_COLLECTS_SELDOM)
        async with EmbeddedServer(shared=False, headless=True) as server:
            yield await connect(address=server.address), server.pid


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of a process; 0 where that can't be known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
