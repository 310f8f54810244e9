"""The scene of a measurement: a Temporal server and a model server of its own, and the project's Workers on it."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client

from benchmarks.model_control import ModelControl
from benchmarks.processes import ProcessFailed
from benchmarks.systems import Project
from runtime.connection import ConnectionFailed, connect
from runtime.process import exit_now
from runtime.server.embedded_server import EmbeddedServer, ServerFailed
from runtime.server.server_record import ServerInfo
from runtime.server.temporal_binary import TemporalNotFound
from supervision import limits

T = TypeVar("T")


@dataclass(frozen=True)
class Scene:
    """What serves a measurement; everything is in `folder`."""

    folder: Path
    info: ServerInfo
    model: ModelControl
    client: Client

    def project(self, process: str = "project") -> Project:
        """Returns the project as one Worker process, which is not started yet."""
        return Project(self.folder, self.client, self.info.address, self.model.url, process)


@asynccontextmanager
async def scene(name: str, *, kept: Path | None = None, model_script: Path | None = None) -> AsyncIterator[Scene]:
    """Serves a measurement for the time of an `async with` block, in the folder `kept`, else in one that is removed."""
    async with AsyncExitStack() as stack:
        if kept is None:
            new = tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(new))
        else:
            folder = kept.absolute()
            folder.mkdir(parents=True, exist_ok=True)
        server = EmbeddedServer(shared=False, db=folder / "temporal.db", headless=True)
        info = await stack.enter_async_context(server)
        model = ModelControl(folder, model_script)
        await stack.enter_async_context(model.process)
        yield Scene(folder, info, model, await connect(address=info.address, wait=limits.WORKER_CONNECT_WAIT))


def measured(measuring: Coroutine[Any, Any, T]) -> T:
    """Returns what a measurement returns; ends the process with 1 where something it needs did not run."""
    try:
        return asyncio.run(measuring)
    except (TemporalNotFound, ServerFailed, ConnectionFailed, ProcessFailed) as error:
        sys.stderr.write(f"{error}\n")
        exit_now(1)
