"""What runs need to be served: settings, a server of their own, Worker processes."""

import base64
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from activities.store.store_urls import open_store
from temporal_supervisor.runtime.connection import connect, namespace_id
from temporal_supervisor.runtime.encryption import Keys, read_keys
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.runtime.settings import Settings
from tests.forked import started
from tests.waiting import until

ROOT = Path(__file__).parents[1]
TEAMS = Path(__file__).parent / "workflow" / "teams"
_ROOM = 2 << 30  # bytes: a container may have 64 MiB there
_OURS = ("ANTHROPIC_", "SUPERVISOR_", "OTEL_", "TEMPORAL_")


def settings_for(model_url: str, artifacts: Path | str, **changes: Any) -> Settings:
    """Returns settings of Workers that serve the test teams with that model, whatever the environment says."""
    fixed = {"artifacts_url": str(artifacts), "teams_dir": TEAMS, "ANTHROPIC_BASE_URL": model_url}
    return Settings(_env_file=None, **{"ANTHROPIC_API_KEY": "test-key", **fixed, **changes})


async def store_of(client: Client, url: Path | str) -> ArtifactStore:
    """Returns the artifact store that Workers of the client's namespace use."""
    return open_store(url, await namespace_id(client))


@contextlib.contextmanager
def light_folder() -> Iterator[Path]:
    """Gives a folder whose files take no disk, where there is one: a tenth of the CPU of short runs."""
    memory = Path("/dev/shm")
    is_roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM
    with tempfile.TemporaryDirectory(dir=memory if is_roomy else None) as folder:
        yield Path(folder)


@contextlib.asynccontextmanager
async def own_server(
    dynamic_config: Mapping[str, JsonValue] | None = None, *, db: Path | None = None, keys: Keys | None = None
) -> AsyncIterator[Client]:
    """Gives a client of a Temporal server that nothing else uses, and that no Worker serves yet."""
    async with EmbeddedServer(shared=False, db=db, headless=True, dynamic_config=dynamic_config) as server:
        yield await connect(address=server.address, keys=keys)


def address_of(client: Client) -> str:
    """Returns the address of a client's server."""
    return client.service_client.config.target_host


def keys_in(file: Path, **keys: bytes) -> Keys:
    """Writes a file of keys, the first one encrypts, and reads it."""
    file.write_text("".join(f"{name} {base64.b64encode(key).decode()}\n" for name, key in keys.items()))
    file.chmod(0o600)
    return read_keys(file)


@dataclass
class WorkerProcess:
    """A Worker process and what it wrote."""

    process: BaseProcess
    log: Path

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self.process.exitcode

    async def ready(self) -> None:
        """Returns once it serves."""
        await until(lambda: "worker ready" in self.log.read_text() or self.code is not None, 120)
        assert self.code is None, self.log.read_text()

    async def ended(self) -> int:
        """Returns the exit code, once there is one."""
        await until(lambda: self.code is not None, 60)
        assert self.code is not None
        return self.code

    async def stopped(self) -> None:
        """Returns once it has ended in order."""
        self.process.terminate()
        assert await self.ended() == 0

    def kill(self) -> None:
        """Ends it as a crash would."""
        self.process.kill()
        self.process.join()


class WorkerProcesses:
    """Starts Worker processes in one environment."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self.environ = environ
        self.artifacts = Path(environ["SUPERVISOR_ARTIFACTS_URL"])
        self._folder = folder
        self._started: list[WorkerProcess] = []

    def launch(self, *options: str) -> WorkerProcess:
        """Starts the program with those options."""
        log = self._folder / f"worker-{len(self._started)}.log"
        log.write_bytes(b"")  # of an earlier one in this folder it would have the words that it is ready
        files = [os.devnull, os.devnull, str(log)]
        self._started.append(WorkerProcess(started("worker_main", options, self.environ, self._folder, files), log))
        return self._started[-1]

    async def start(self, *options: str) -> WorkerProcess:
        """Starts a process and returns it once it serves."""
        started = self.launch(*options)
        await started.ready()
        return started

    def kill(self) -> None:
        """Ends the one that was started last, as a crash would."""
        self._started[-1].kill()

    def end(self) -> None:
        """Kills those that still run."""
        for worker in self._started:
            if worker.code is None:
                worker.kill()


@contextlib.contextmanager
def worker_processes(client: Client, model_url: str, artifacts: str, folder: Path) -> Iterator[WorkerProcesses]:
    """Gives a way to start Worker processes for the test teams; they end with the block."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    environ = {
        **kept,
        "TEMPORAL_ADDRESS": address_of(client),
        "ANTHROPIC_BASE_URL": model_url,
        "SUPERVISOR_ARTIFACTS_URL": artifacts,
        "SUPERVISOR_TEAMS_DIR": str(TEAMS),
    }
    processes = WorkerProcesses(environ, folder)
    try:
        yield processes
    finally:
        processes.end()
