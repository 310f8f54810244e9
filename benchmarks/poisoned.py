"""The command `python -m benchmarks.poisoned`: honest runs beside one frozen Worker of three, and without it."""

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from temporalio.client import Client

from benchmarks import limits
from benchmarks.processes import ProcessFailed
from benchmarks.rows import WARM_UP, Row
from benchmarks.scene import measured, scene
from benchmarks.systems import Project, Runs, request
from runtime.process import exit_now
from supervision.queues import WORKFLOW_QUEUE
from workflows.supervisor import SupervisorWorkflow

MOST = 1.5
"""How many times as long the honest runs may take together."""

_WORKERS = 3
_HONEST = Row("honest runs", 3, 1, 1.0, runs=100, at_once=8)
_POISON = Row("a run that freezes a Worker", 1, 1, 1.0, tool="freeze")


@dataclass(frozen=True)
class Pair:
    """The same honest runs twice: without poison, then begun in the moment in which a Worker froze. Times in seconds.

    `slower` compares the time of all of them together.
    """

    wall: float
    wall_poisoned: float
    median: float
    median_poisoned: float
    slowest: float
    slowest_poisoned: float
    slower: float


def main() -> None:
    """Exit codes: 0 the honest runs are not slowed down by more than MOST, 1 they are, or something did not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.poisoned", description=__doc__)
    parser.add_argument("--runs", type=int, default=_HONEST.runs, help="honest runs of each side")
    parser.add_argument("--pairs", type=int, default=3, help="repetitions of both sides")
    options = parser.parse_args()
    row = Row(_HONEST.name, 3, 1, _HONEST.latency, runs=options.runs, at_once=_HONEST.at_once)
    pairs = measured(_measure(row, options.pairs))
    slower = statistics.median(pair.slower for pair in pairs)
    sys.stdout.write(f"slower by a frozen Worker of {_WORKERS}: {slower:.2f} times, at most {MOST:g}\n")
    exit_now(0 if slower <= MOST else 1)


async def _measure(row: Row, pairs: int) -> list[Pair]:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(scene("poisoned"))
        fleet = [place.project(f"worker-{n}") for n in range(_WORKERS)]
        for project in fleet:
            await stack.enter_async_context(project.worker)
        place.model.prepare(row.latency)
        await fleet[0].run(WARM_UP, "warm")
        seen = []
        for number in range(pairs):
            calm = await fleet[0].run(row, f"calm-{number}")
            poisoned = await _poisoned(place.client, place.folder, fleet, row, number)
            seen.append(_pair(calm, poisoned))
            sys.stdout.write(json.dumps({key: round(value, 2) for key, value in asdict(seen[-1]).items()}) + "\n")
            sys.stdout.flush()
        return seen


async def _poisoned(client: Client, folder: Path, fleet: list[Project], row: Row, number: int) -> Runs:
    """Returns the honest runs that begin once a Worker is frozen; that one is replaced when all of them have ended."""
    poison = folder / "poison"
    poison.touch()
    run_id = f"poison-{number}"
    asked = request(_POISON, run_id).model_copy(update={"team": "poisoned"})
    begun = await client.start_workflow(SupervisorWorkflow.run, asked, id=run_id, task_queue=WORKFLOW_QUEUE)
    async with asyncio.timeout(limits.START_WAIT.total_seconds()):
        while poison.exists():  # noqa: ASYNC110 - another process removes it
            await asyncio.sleep(limits.POLL.total_seconds())
    honest = await fleet[0].run(row, f"poisoned-{number}")
    await begun.result()
    ended = list(_ended(fleet))
    if len(ended) != 1:
        raise ProcessFailed(f"{len(ended)} Workers have ended where the poisoned one was due")
    await ended[0].worker.__aenter__()
    return honest


def _ended(fleet: list[Project]) -> Iterator[Project]:
    return (project for project in fleet if not project.worker.runs)


def _pair(calm: Runs, poisoned: Runs) -> Pair:
    for runs in (calm, poisoned):
        if wrong := [run.id for run in runs.runs if not run.ok]:
            raise ProcessFailed(f"{len(wrong)} answers miss findings, the first is {wrong[0]}")
    before, after = ([run.wall for run in runs.runs] for runs in (calm, poisoned))
    return Pair(
        wall=calm.wall,
        wall_poisoned=poisoned.wall,
        median=statistics.median(before),
        median_poisoned=statistics.median(after),
        slowest=max(before),
        slowest_poisoned=max(after),
        slower=poisoned.wall / calm.wall,
    )


if __name__ == "__main__":
    main()
