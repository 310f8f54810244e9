"""The scene of a measurement: goals, Temporal servers, a model server, and the systems on them.

A system is one Worker process, started and asked by public means alone: a program, the names of its
workflow and queue, its input and result as JSON. So the floor is measured as the project is.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from temporalio.client import Client, WorkflowHandle

from benchmarks.bench_brain import think
from temporal_supervisor.console.demo import Served
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer, ServerInfo
from temporal_supervisor.standin.server.api_reply import ApiReply
from temporal_supervisor.standin.server.api_request import ApiRequest
from temporal_supervisor.standin.server.app import BrainServer, serving
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig
from temporal_supervisor.supervision.base import limits

CHECKOUT = Path(__file__).resolve().parent.parent
_FLOOR_SETTINGS = ("--sandbox", "passall", "--max-act", "2000", "--max-wft", "200")
# as wide and as deep as a row needs, one answer, no review
_OPTIONS = {
    "team": "bench",
    "max_subtasks": limits.MAX_SUBTASKS,
    "max_parallel": limits.MAX_PARALLEL,
    "max_turns": limits.MAX_TURNS,
    "max_reviews": 0,
    "deadline": "PT30M",
}


@dataclass(frozen=True)
class Row:
    """`runs` goals, `at_once` at a time.

    Each plans `agents` worker agents of `tool_turns` tool calls, and an answer. `latency` is what
    each model call takes, in seconds. With `dependents` the plan has so many further worker agents,
    each of which builds on all `agents`.
    """

    name: str
    agents: int
    tool_turns: int
    latency: float
    runs: int = 1
    at_once: int = 1
    tool: str = "lookup"
    dependents: int = 0

    @property
    def subtasks(self) -> int:
        """Worker agents of one run."""
        return self.agents + self.dependents

    @property
    def model_calls(self) -> int:
        """Calls of all runs together: plan, turns, synthesis."""
        return self.runs * (2 + self.subtasks * (self.tool_turns + 1))

    @property
    def critical_path(self) -> float:
        """Seconds that one run's chain of model calls takes, were everything else free."""
        return (3 + self.tool_turns) * self.latency

    def goal(self, run_id: str) -> str:
        """Returns the goal with the marker that the bench's model reads."""
        more = f" then={self.dependents}" if self.dependents else ""
        return f"[[bench n={self.agents} t={self.tool_turns} run={run_id} tool={self.tool}{more}]]"


LONG = "lookup_long"  # the floor has nothing comparable
WARM_UP = Row("warm-up", 3, 1, 0.0, runs=4, at_once=2)
ROWS = [
    Row("small runs, 1 at a time", 3, 1, 0.0, runs=20),
    Row("small runs, 8 at a time", 3, 1, 0.0, runs=64, at_once=8),
    Row("10 agents, 200 ms a call", 10, 2, 0.2),
    Row("100 agents, 200 ms a call", 100, 2, 0.2),
    Row("1 agent, 10 tool turns of 5 KB", 1, 10, 0.0, tool=LONG),
    Row("1 agent, 40 tool turns of 5 KB", 1, 40, 0.0, tool=LONG),
]


class BenchModel:
    """The bench's model, served in this process, which waits while it measures.

    Its `log` has two entries for each call, as received and as ended.
    """

    def __init__(self, brain: Callable[[ApiRequest], ApiReply] = think) -> None:
        self.url = ""
        self.log = list[dict[str, Any]]()
        self._script = FaultScript()
        self.server = BrainServer(brain, self.log.append, self._script)

    def prepare(self, latency: float) -> None:
        """Answers take `latency` seconds from now on; the call log begins again."""
        self._script.replace(ServerConfig(latency_ms=latency * 1000, delta_chars=1 << 20))
        self.log.clear()

    def answered(self) -> list[str]:
        """Returns the calls that are answered."""
        return [entry["call"] for entry in self.log if entry["event"] == "answered"]


@dataclass(frozen=True)
class System:
    """A Worker process on a Temporal server, and how its runs are started."""

    name: str
    worker: Served
    server_pid: int
    client: Client
    workflow: str
    queue: str
    options: Mapping[str, Any]

    async def start(self, row: Row, run_id: str, **more: Any) -> WorkflowHandle[Any, Any]:
        """Starts a run; `more` is for its request."""
        request = {"goal": row.goal(run_id), **self.options, **more}
        return await self.client.start_workflow(
            self.workflow, request, id=run_id, task_queue=self.queue
        )

    async def run(self, row: Row, base: str) -> list[float]:
        """Runs a row, and returns how many seconds each run took; run ids start with `base`.

        Raises ValueError for an answer that misses findings.
        """
        free = asyncio.Semaphore(row.at_once)

        async def one(run_id: str) -> float:
            async with free:
                began = time.monotonic()
                if not holds_all(row, await (await self.start(row, run_id)).result()):
                    raise ValueError(f"the answer of {run_id} misses findings")
                return time.monotonic() - began

        return await asyncio.gather(*(one(f"{base}-{number}") for number in range(row.runs)))


class Scene:
    """The servers of a measurement: a model for all systems, and a Temporal server for each.

    Everything is in `folder`.
    """

    def __init__(
        self, folder: Path, stack: AsyncExitStack, brain: Callable[[ApiRequest], ApiReply]
    ) -> None:
        self.stack = stack
        self.model = BenchModel(brain)
        self._folder = folder

    async def project(self) -> System:
        """Returns the project as one Worker process, which is not started yet."""
        server, client = await self._temporal("project")
        variables = {
            "ANTHROPIC_BASE_URL": self.model.url,
            "SUPERVISOR_ARTIFACTS_URL": str(self._folder / "artifacts"),
            "SUPERVISOR_CACHE_DIR": str(self._folder / "cache"),
            "SUPERVISOR_TEAMS_DIR": str(CHECKOUT / "benchmarks" / "team"),
            "TEMPORAL_ADDRESS": server.address,
        }
        worker = self._process("project", ["-m", "worker_main"], "worker ready", variables)
        return System(
            "project", worker, server.pid, client, "SupervisorWorkflow", "supervisor", _OPTIONS
        )

    async def floor(self, script: Path) -> System:
        """Returns a minimal system on the same SDK, with the settings that were fastest for it."""
        server, client = await self._temporal("floor")
        words = [
            str(script),
            "worker",
            "--target",
            server.address,
            "--llm",
            self.model.url,
            *_FLOOR_SETTINGS,
        ]
        worker = self._process("floor", words, "ready", {"REF_QUEUE": "floor"})
        return System("floor", worker, server.pid, client, "Supervisor", "floor", {"opts": {}})

    async def _temporal(self, name: str) -> tuple[ServerInfo, Client]:
        server = EmbeddedServer(shared=False, db=self._folder / f"{name}.db", headless=True)
        info = await self.stack.enter_async_context(server)
        return info, await connect(address=info.address, wait=limits.WORKER_CONNECT_WAIT)

    def _process(
        self, name: str, words: list[str], ready: str, variables: Mapping[str, str]
    ) -> Served:
        # Without compiled bytecode each workflow instance compiles its module, which doubles the
        # cost of its start.
        left = (
            "ANTHROPIC_",
            "OTEL_",
            "REF_",
            "SUPERVISOR_",
            "TEMPORAL_",
            "PYTHONDONTWRITEBYTECODE",
        )
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(left)}
        loopback = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
        return Served(
            name, words, {**inherited, **loopback, **variables}, self._folder / f"{name}.log", ready
        )


def holds_all(row: Row, result: Any) -> bool:
    """True if an answer is made of the findings of all subtasks."""
    answer = result["answer"] if isinstance(result, dict) else result
    return f"{row.subtasks}/{row.subtasks}" in answer


@asynccontextmanager
async def scene(brain: Callable[[ApiRequest], ApiReply] = think) -> AsyncIterator[Scene]:
    """Serves a measurement for the time of an `async with` block, in a folder that is removed."""
    async with AsyncExitStack() as stack:
        new = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
        place = Scene(Path(stack.enter_context(new)), stack, brain)
        place.model.url = await stack.enter_async_context(serving(place.model.server))
        yield place


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of a process and its children."""
    total, root = 0.0, psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.Error):  # a child that has just ended
            total += sum(process.cpu_times()[:2])
    return total
