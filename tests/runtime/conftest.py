"""A cache folder of the test's own, the real `temporal` program, and servers that end with the test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from temporal_supervisor.runtime.server.embedded_server import stop_running
from temporal_supervisor.runtime.server.temporal_binary import find_temporal


@pytest.fixture(scope="session")
def temporal_program() -> Path:
    return find_temporal()


@pytest.fixture
async def cache(tmp_path: Path, temporal_program: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    """An empty cache folder; a shared server left in it is ended."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(folder))
    monkeypatch.setenv("SUPERVISOR_TEMPORAL", str(temporal_program))
    yield folder
    await stop_running()
