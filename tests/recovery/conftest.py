"""Worker processes that can be killed, on a server that no other Worker uses."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client

from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer
from tests.conftest import LAB
from tests.scripted_model import ScriptedModel, scripted_model
from tests.waiting import until

ROOT = Path(__file__).parents[2]


@dataclass
class WorkerProcess:
    """A Worker process and what it wrote."""

    process: subprocess.Popen[bytes]
    log: Path

    async def ready(self) -> None:
        """Returns once it serves."""
        await until(lambda: "worker ready" in self.log.read_text() or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.log.read_text()

    def kill(self) -> None:
        """As a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Workers:
    """Starts Worker processes, and ends those that still run."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.environ = environ
        self.artifacts = Path(environ["SUPERVISOR_ARTIFACTS_URL"])
        self._folder = folder
        self._started: list[WorkerProcess] = []

    async def start(self, *options: str) -> WorkerProcess:
        """A process that serves."""
        log = self._folder / f"worker-{len(self._started)}.log"
        process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, str(ROOT / "worker_main.py"), *options],
            env=self.environ,
            cwd=self._folder,
            stderr=log.open("wb"),
        )
        started = WorkerProcess(process, log)
        self._started.append(started)
        await started.ready()
        return started

    def end(self) -> None:
        """Kills what is left."""
        for worker in self._started:
            if worker.process.poll() is None:
                worker.kill()


@pytest.fixture(scope="package")
async def lone_model() -> AsyncIterator[ScriptedModel]:
    """A scripted model for the killed Workers."""
    async with scripted_model() as model:
        yield model


@pytest.fixture(scope="package")
async def lone_client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """A client of a server that only these tests' processes serve."""
    db = tmp_path_factory.mktemp("lone") / "temporal.db"
    async with EmbeddedServer(shared=False, db=db, headless=True) as info:
        yield await connect(address=info.address)


@pytest.fixture
def workers(lone_client: Client, lone_model: ScriptedModel, tmp_path: Path) -> Iterator[Workers]:
    """Starts Worker processes of the lab team."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC_", "SUPERVISOR_", "OTEL_", "TEMPORAL_"))
    }
    environ = {
        **kept,
        "TEMPORAL_ADDRESS": lone_client.service_client.config.target_host,
        "ANTHROPIC_BASE_URL": lone_model.url,
        "SUPERVISOR_ARTIFACTS_URL": str(tmp_path / "artifacts"),
        "SUPERVISOR_TEAMS_DIR": str(LAB),
    }
    starting = Workers(environ, tmp_path)
    yield starting
    starting.end()
