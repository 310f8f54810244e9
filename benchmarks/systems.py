"""The two systems under measurement: the project, and the floor that it is compared with.

Both are one Worker process on the same server, with the same model server; both measure a run from before its
start to its answer.
"""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from temporalio.client import Client

from benchmarks.history import History, read_history
from benchmarks.processes import Process, ProcessFailed, environment
from benchmarks.rows import Row
from supervision import limits
from supervision.contract.request import RunRequest
from supervision.queues import WORKFLOW_QUEUE
from workflows.supervisor import SupervisorWorkflow

CHECKOUT = Path(__file__).resolve().parent.parent
FLOOR_SETTINGS = ("--sandbox", "passall", "--max-act", "2000", "--max-wft", "200")
_FLOOR_QUEUE = "floor"


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
    histories: list[History] = field(default_factory=list)


class System(Protocol):
    """Something that can be measured."""

    name: str
    worker: Process

    async def run(self, row: Row, base: str) -> Runs:
        """Runs a row; run ids start with `base`."""
        ...

    async def histories(self, runs: Runs) -> list[History]:
        """Returns the histories of the first run: the supervisor's and that of one worker agent."""
        ...


class Project:
    """temporal-supervisor: `worker_main.py` and the typed client."""

    name = "project"

    def __init__(self, folder: Path, client: Client, address: str, model_url: str, process: str = "project") -> None:
        self._client = client
        variables = {
            "ANTHROPIC_BASE_URL": model_url,
            "SUPERVISOR_ARTIFACTS_URL": str(folder / "artifacts"),
            "SUPERVISOR_CACHE_DIR": str(folder / "cache"),
            "SUPERVISOR_TEAMS_DIR": str(Path(__file__).with_name("team")),
            "TEMPORAL_ADDRESS": address,
        }
        command = [sys.executable, str(CHECKOUT / "worker_main.py")]
        self.worker = Process(process, command, folder, lambda output: "worker ready" in output, variables)

    async def run(self, row: Row, base: str) -> Runs:
        """Runs a row; run ids start with `base`."""
        free = asyncio.Semaphore(row.at_once)

        async def one(run_id: str) -> Run:
            async with free:
                began = time.time()  # compared with the model server's clock
                handle = await self._client.start_workflow(
                    SupervisorWorkflow.run, request(row, run_id), id=run_id, task_queue=WORKFLOW_QUEUE
                )
                result = await handle.result()
                wall = time.time() - began
                return Run(run_id, began, wall, f"{row.subtasks}/{row.subtasks}" in result.answer)

        began = time.monotonic()
        runs = await asyncio.gather(*(one(f"{base}-{number}") for number in range(row.runs)))
        return Runs(list(runs), time.monotonic() - began)

    async def histories(self, runs: Runs) -> list[History]:
        """Returns the histories of the first run: the supervisor's and that of one worker agent."""
        root = runs.runs[0].id
        return [await read_history(self._client, run_id) for run_id in (root, f"{root}/t1/1")]


def request(row: Row, run_id: str) -> RunRequest:
    """Returns the project's request: as wide and as deep as the row needs, one answer, no review."""
    return RunRequest(
        goal=row.goal(run_id),
        team="bench",
        max_subtasks=row.subtasks,
        max_parallel=limits.MAX_PARALLEL,
        max_turns=limits.MAX_TURNS,
        max_reviews=0,
        deadline=timedelta(minutes=30),
    )


class Floor:
    """A minimal system on the same SDK, with the settings that were fastest for it."""

    name = "floor"

    def __init__(self, folder: Path, script: Path, address: str, model_url: str) -> None:
        self._where = ["--target", address, "--llm", model_url]
        self._script = script
        self._variables = {"REF_QUEUE": _FLOOR_QUEUE}
        command = [sys.executable, str(script), "worker", *self._where, *FLOOR_SETTINGS]
        self.worker = Process("floor", command, folder, lambda output: "ready" in output, self._variables)

    async def run(self, row: Row, base: str) -> Runs:
        """Runs a row; run ids start with `base`. Raises ProcessFailed."""
        words = {"--n": row.agents, "--t": row.tool_turns, "--runs": row.runs, "--conc": row.at_once, "--run": base}
        options = [str(word) for pair in words.items() for word in pair]
        command = [sys.executable, str(self._script), "start", *self._where, *options]
        starter = await asyncio.create_subprocess_exec(
            *command, env=environment(self._variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            output, errors = await starter.communicate()
        finally:
            if starter.returncode is None:
                starter.kill()
        if starter.returncode or not output.strip():
            raise ProcessFailed(f"the floor's starter failed: {errors.decode(errors='replace')[-limits.ERROR_BYTES :]}")
        report: dict[str, Any] = json.loads(output.splitlines()[-1])
        runs = [Run(run["run"], run["t0"], run["wall"], run["ok"]) for run in report["runs"]]
        sizes = [report["history"][kind] for kind in ("supervisor", "child")]
        return Runs(runs, report["total"], [History(size["events"], size["bytes"], None) for size in sizes])

    async def histories(self, runs: Runs) -> list[History]:
        """Returns the histories of the first run: the supervisor's and that of one worker agent."""
        return runs.histories
