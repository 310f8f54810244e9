"""The scene of a measurement: Temporal servers, a model server, and the systems on them.

A system is one Worker process, started and asked by public means alone: a program, the names of its workflow and
queue, its input and result as JSON. So the floor is measured as the project is.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowHandle

from benchmarks.processes import CHECKOUT, ModelControl, Process, ProcessFailed
from benchmarks.rows import Row
from runtime.connection import ConnectionFailed, connect
from runtime.process import exit_now
from runtime.server.embedded_server import EmbeddedServer, ServerFailed
from runtime.server.temporal_binary import TemporalNotFound
from supervision.base import limits

FLOOR_SETTINGS = ("--sandbox", "passall", "--max-act", "2000", "--max-wft", "200")
T = TypeVar("T")
Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run as its client saw it; `began` is in seconds since the epoch, `wall` in seconds."""

    id: str
    began: float
    wall: float
    ok: bool


@dataclass(frozen=True)
class Runs:
    """The runs of a row; `wall` is the time of all together."""

    runs: list[Run]
    wall: float


@dataclass(frozen=True)
class System:
    """A Worker process on a Temporal server, and how its runs are started."""

    name: str
    worker: Process
    server_pid: int
    client: Client
    workflow: str
    queue: str
    request: Callable[[Row, str], Json]

    async def start(self, row: Row, run_id: str, **more: Any) -> WorkflowHandle[Any, Any]:
        """Starts a run; `more` is for its request."""
        request = self.request(row, run_id) | more
        return await self.client.start_workflow(self.workflow, request, id=run_id, task_queue=self.queue)

    async def run(self, row: Row, base: str) -> Runs:
        """Runs a row; run ids start with `base`."""
        free = asyncio.Semaphore(row.at_once)

        async def one(run_id: str) -> Run:
            async with free:
                began = time.time()  # compared with the model server's clock
                result = await (await self.start(row, run_id)).result()
                return Run(run_id, began, time.time() - began, holds_all(row, result))

        began = time.monotonic()
        runs = await asyncio.gather(*(one(f"{base}-{number}") for number in range(row.runs)))
        return Runs(list(runs), time.monotonic() - began)


@dataclass(frozen=True)
class Scene:
    """What serves a measurement; everything is in `folder`."""

    folder: Path
    stack: AsyncExitStack
    server_pid: int
    client: Client
    model: ModelControl

    def project(self) -> System:
        """Returns the project as one Worker process, which is not started yet."""
        variables = {
            "ANTHROPIC_BASE_URL": self.model.url,
            "SUPERVISOR_ARTIFACTS_URL": str(self.folder / "artifacts"),
            "SUPERVISOR_CACHE_DIR": str(self.folder / "cache"),
            "SUPERVISOR_TEAMS_DIR": str(CHECKOUT / "benchmarks" / "team"),
            "TEMPORAL_ADDRESS": self._address,
        }
        command = [sys.executable, str(CHECKOUT / "worker_main.py")]
        worker = Process("project", command, self.folder, "worker ready", variables)
        return System("project", worker, self.server_pid, self.client, "SupervisorWorkflow", "supervisor", request)

    def floor(self, script: Path) -> System:
        """Returns a minimal system on the same SDK, with the settings that were fastest for it."""
        where = ["--target", self._address, "--llm", self.model.url]
        command = [sys.executable, str(script), "worker", *where, *FLOOR_SETTINGS]
        worker = Process("floor", command, self.folder, "ready", {"REF_QUEUE": "floor"})

        def job(row: Row, run_id: str) -> Json:
            return {"goal": row.goal(run_id), "opts": {}}

        return System("floor", worker, self.server_pid, self.client, "Supervisor", "floor", job)

    async def beside(self, name: str) -> "Scene":
        """Returns a scene with the same model and a Temporal server and folder of its own."""
        folder = self.folder / name
        folder.mkdir()
        return Scene(folder, self.stack, *await _temporal(self.stack, folder), self.model)

    @property
    def _address(self) -> str:
        return self.client.service_client.config.target_host


def request(row: Row, run_id: str) -> Json:
    """Returns the project's request: as wide and as deep as the row needs, one answer, no review."""
    return {
        "goal": row.goal(run_id),
        "team": "bench",
        "max_subtasks": row.subtasks,
        "max_parallel": limits.MAX_PARALLEL,
        "max_turns": limits.MAX_TURNS,
        "max_reviews": 0,
        "deadline": "PT30M",
    }


def holds_all(row: Row, result: Any) -> bool:
    """True if an answer is made of the findings of all subtasks."""
    answer = result["answer"] if isinstance(result, dict) else result
    return f"{row.subtasks}/{row.subtasks}" in answer


@asynccontextmanager
async def scene(name: str, *, kept: Path | None = None) -> AsyncIterator[Scene]:
    """Serves a measurement for the time of an `async with` block, in the folder `kept`, else in one that is removed."""
    async with AsyncExitStack() as stack:
        if kept is None:
            new = tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(new))
        else:
            folder = kept.absolute()
            folder.mkdir(parents=True, exist_ok=True)
        model = ModelControl(folder)
        await stack.enter_async_context(model.process)
        yield Scene(folder, stack, *await _temporal(stack, folder), model)


async def _temporal(stack: AsyncExitStack, folder: Path) -> tuple[int, Client]:
    info = await stack.enter_async_context(EmbeddedServer(shared=False, db=folder / "temporal.db", headless=True))
    return info.pid, await connect(address=info.address, wait=limits.WORKER_CONNECT_WAIT)


def measured(measuring: Coroutine[Any, Any, T]) -> T:
    """Returns what a measurement returns; ends the process with 1 where something it needs did not run."""
    try:
        return asyncio.run(measuring)
    except (TemporalNotFound, ServerFailed, ConnectionFailed, ProcessFailed) as error:
        sys.stderr.write(f"{error}\n")
        exit_now(1)
