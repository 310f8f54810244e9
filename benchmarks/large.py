"""Runs of the largest sizes that a request may ask for.

Do they complete, and how long is a workflow task at most? `python -m benchmarks.large` (or
`make large`) runs them, with kill -9 of the Worker process in the middle.
"""

import argparse
import asyncio
import contextlib
import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from benchmarks.scene import BenchModel, Row, System, holds_all, scene
from temporal_supervisor.console.base.command import DONE, FAILED, Access, perform
from temporal_supervisor.console.base.terminal import print_out
from temporal_supervisor.runtime.process import exit_now

LONGEST_TASK = 3.0  # seconds a workflow task may take, of the server's ten
_LOOK = 0.25  # seconds between two looks at the model's call log
_PATIENCE = 900.0  # seconds for one size
_AGENTS_READ = 40  # worker agents of each run whose histories are read
_MORE = {"budget": {"tokens": 5 * 10**7, "usd": 100.0}, "deadline": "PT2H"}
_FAULTS = ("workflow_task_failed_event_attributes", "workflow_task_timed_out_event_attributes")
SIZES = {
    "deep": Row("two runs of 1,000 subtasks", 1000, 0, 1.0, runs=2),
    "many": Row("24 runs of 120 subtasks", 120, 0, 1.0, runs=24),
    "wide": Row("110 subtasks, then 190 that depend on all of them", 110, 0, 1.0, dependents=190),
}


@dataclass
class Tasks:
    """The workflow tasks of some histories.

    One that a process had when it was `killed` fails without a fault. `stood_still` has for each of
    the `roots` the seconds from the kill to its next command, `at_work` those of them that had a
    workflow task at work when the process was killed: the server waits for that until it times out.
    """

    killed: float = 0.0
    roots: list[str] = field(default_factory=list)
    stood_still: dict[str, float] = field(default_factory=dict)
    at_work: list[str] = field(default_factory=list)
    longest: float = 0.0
    failed: list[str] = field(default_factory=list)
    events: int = 0

    async def read(self, client: Client, workflow_id: str) -> None:
        """Adds those of one history: the longest by the server's clock, and those that failed."""
        started: dict[int, float] = {}
        async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
            at, kind = event.event_time.ToNanoseconds() / 1e9, str(event.WhichOneof("attributes"))
            attributes = getattr(event, kind)
            begun = started.get(getattr(attributes, "started_event_id", 0), 0.0)
            self.events += 1
            if kind == "workflow_task_started_event_attributes":
                started[event.event_id] = at
            elif kind == "workflow_task_completed_event_attributes":
                self.longest = max(self.longest, at - begun)
                if workflow_id in self.roots and begun > self.killed:
                    self.stood_still.setdefault(workflow_id, at - self.killed)
            elif (
                kind in _FAULTS and begun > self.killed
            ):  # it was not waiting for the killed process, or at work there
                self.failed.append(f"{workflow_id}: {attributes}")
            elif kind in _FAULTS and workflow_id in self.roots and begun and at > self.killed:
                self.at_work.append(workflow_id)


def main() -> None:
    """Exit codes: 0 all sizes hold, else one does not."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.large", description="Run the largest sizes."
    )
    parser.add_argument("--only", action="append", choices=list(SIZES), help="may be repeated")
    sizes = parser.parse_args().only or list(SIZES)
    exit_now(perform(Access(), lambda: _run(sizes)))


async def _run(sizes: list[str]) -> int:
    code = DONE
    async with scene() as place:
        project = await place.project()
        for name in sizes:
            seen = await _cross(project, place.model, SIZES[name], f"large-{name}")
            code = code if seen["holds"] else FAILED
            print_out(json.dumps(seen))
    return code


async def _cross(project: System, model: BenchModel, row: Row, base: str) -> dict[str, Any]:
    """Runs one size, across a kill of the Worker process, and returns figures; times in seconds.

    Runs that are not done in time are left as they are. `first_call` is from the new process's
    start to its first call.
    """
    tasks = Tasks()
    model.prepare(row.latency)
    began = time.time()
    results: list[Any] = []
    async with project.worker:
        handles = [
            await project.start(row, f"{base}-{number}", **_MORE) for number in range(row.runs)
        ]
        waiting = asyncio.gather(*(handle.result() for handle in handles), return_exceptions=True)
        while not waiting.done() and len(model.answered()) < row.model_calls // 2:  # noqa: ASYNC110 - its log is looked at
            await asyncio.sleep(_LOOK)
        await project.worker.kill()
        tasks.killed = time.time()
        await project.worker.__aenter__()
        with contextlib.suppress(TimeoutError):
            results = await asyncio.wait_for(waiting, max(1.0, _PATIENCE - (time.time() - began)))
        wall = time.time() - began
        tasks.roots = [handle.id for handle in handles]
        for handle in handles:
            agents = [
                f"{handle.id}/t{number}/1" for number in range(1, min(row.agents, _AGENTS_READ) + 1)
            ]
            for workflow_id in (handle.id, *agents):
                with contextlib.suppress(RPCError):  # a run that failed early has no such agents
                    await tasks.read(project.client, workflow_id)
    calls = (entry["at"] for entry in model.log if entry["event"] == "received")
    first_call = next((at - tasks.killed for at in calls if at > tasks.killed), None)
    ended = [result for result in results if isinstance(result, dict)]
    whole = sum(result["status"] == "completed" and holds_all(row, result) for result in ended)
    answered = model.answered()
    holds = whole == row.runs and tasks.longest <= LONGEST_TASK and not tasks.failed
    seen = {
        "name": row.name,
        "whole": whole,
        "runs": row.runs,
        "wall": wall,
        "first_call": first_call,
    }
    return {**seen, "repeated": len(answered) - len(set(answered)), "holds": holds, **asdict(tasks)}


if __name__ == "__main__":
    main()
