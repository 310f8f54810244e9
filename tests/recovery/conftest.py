"""Worker processes that can be killed, on a server that no other Worker uses."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.bucket import s3_endpoint, s3_environment, s3_url
from tests.scripted_model import ScriptedModel, scripted_model
from tests.serving import WorkerProcesses, own_server, worker_processes
from tests.workflow.runs import Lab

__all__ = ["s3_endpoint", "s3_environment", "s3_url"]


@pytest.fixture(scope="session")
async def lone_model() -> AsyncIterator[ScriptedModel]:
    """A scripted model for the killed Workers."""
    async with scripted_model() as model:
        yield model


@pytest.fixture(scope="session")
async def lone_client(light: Path) -> AsyncIterator[Client]:
    """A client of a server that only these tests' processes serve."""
    async with own_server(db=light / "lone.db") as client:
        yield client


@pytest.fixture
def lone(lone_client: Client, lone_model: ScriptedModel, run_id: str) -> Lab:
    """A run there."""
    return Lab(lone_client, lone_model, run_id)


@pytest.fixture
def workers(lone_client: Client, lone_model: ScriptedModel, tmp_path: Path) -> Iterator[WorkerProcesses]:
    """Starts Worker processes."""
    with worker_processes(lone_client, lone_model.url, str(tmp_path / "artifacts"), tmp_path) as processes:
        yield processes
