"""The command behind `make bench`: a row on a system, its time and CPU; and tables of them."""

import argparse
import asyncio
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scene import LONG, ROWS, WARM_UP, BenchModel, Row, System, cpu_seconds, scene
from temporal_supervisor.console.base.command import BAD_INPUT, DONE, Access, CommandFailed, perform
from temporal_supervisor.runtime.process import exit_now, write_stderr

_ROW_TIMEOUT = 300.0  # seconds; the longest row takes ten on two cores
_SETTLE = 1.0  # seconds between rows: the server's work after a run belongs to that run
_FLOOR = "reference_temporal.py"
_REPETITIONS = 3
_COLUMNS = {
    "wall s": ".2f",
    "beyond critical path s": ".2f",
    "worker CPU ms/call": ".1f",
    "server CPU ms/call": ".1f",
    "first call ms": ".0f",
}
_TO_FLOOR = {
    "beyond, to floor": ["beyond critical path s"],
    "CPU, to floor": ["worker CPU ms/call", "server CPU ms/call"],
}


Seen = dict[tuple[str, str], list[dict[str, float]]]
"""The samples of a row of goals on a system, by their names: a number for each column."""


async def measure(system: System, model: BenchModel, row: Row, base: str) -> dict[str, float]:
    """Returns the number of each column.

    Raises ValueError if there is nothing to trust, and what a run may raise.
    """
    model.prepare(row.latency)
    pids = (system.worker.pid, system.server_pid)
    before = [cpu_seconds(pid) for pid in pids]
    began = time.time()  # compared with the model server's clock
    async with asyncio.timeout(_ROW_TIMEOUT):
        took = await system.run(row, base)
    await asyncio.sleep(_SETTLE)
    if (calls := len(model.answered())) != row.model_calls:
        raise ValueError(f"{calls} model calls were answered where {row.model_calls} were due")
    spent = [
        1000 * (cpu_seconds(pid) - old) / row.model_calls
        for pid, old in zip(pids, before, strict=True)
    ]
    first_call = min(entry["at"] for entry in model.log) - began
    wall = statistics.median(took)
    return dict(
        zip(_COLUMNS, [wall, wall - row.critical_path, *spent, 1000 * first_call], strict=True)
    )


def report(seen: Seen) -> str:
    """Returns the medians as Markdown."""
    header = ["row", "system", *_COLUMNS, *_TO_FLOOR]
    lines = [header, ["---"] * len(header)]
    medians = {
        at: {name: statistics.median(row[name] for row in rows) for name in _COLUMNS}
        for at, rows in seen.items()
    }
    for (row, system), own in medians.items():
        cells = [format(own[name], form) for name, form in _COLUMNS.items()]
        floor = medians.get((row, "floor"))
        if floor and system != "floor":
            cells += [
                f"{sum(own[n] for n in parts) / sum(floor[n] for n in parts):.2f}"
                for parts in _TO_FLOOR.values()
            ]
        lines.append([row, system, *cells])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Exit codes: 0 measured, else something did not run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure what a run costs."
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds it")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in row.name]
    exit_now(perform(Access(), lambda: _run(rows, os.environ.get("SUPERVISOR_BENCH_FLOOR"))))


async def _run(rows: list[Row], folder: str | None) -> int:
    """Starts everything, measures all rows, the systems in turn, and ends everything.

    Returns the exit code.
    """
    floor = Path(folder).absolute() / _FLOOR if folder else None
    if floor and not floor.is_file():
        raise CommandFailed(
            BAD_INPUT,
            f"{floor} does not exist: SUPERVISOR_BENCH_FLOOR names the folder that has it",
        )
    write_stderr(f"floor: {floor or 'none'}")
    seen: Seen = {}
    async with scene() as place:
        systems = [await place.project(), *([await place.floor(floor)] if floor else [])]
        for system in systems:
            await place.stack.enter_async_context(system.worker)
            await measure(system, place.model, WARM_UP, f"{system.name}-warm")
        for repetition in range(_REPETITIONS):
            for number, row in enumerate(rows):
                # Each second time the other way round: to come first is no advantage.
                for system in systems[:: -1 if repetition % 2 else 1]:
                    if system.name == "floor" and row.tool == LONG:
                        continue
                    sample = await measure(
                        system, place.model, row, f"{system.name}-{number}-{repetition}"
                    )
                    seen.setdefault((row.name, system.name), []).append(sample)
                    at, load = f"{datetime.now(UTC):%H:%M:%S} {repetition + 1}", os.getloadavg()[0]
                    write_stderr(
                        f"{at}  {row.name}, {system.name}: "
                        f"{sample['wall s']:.2f} s (load {load:.1f})"
                    )
    sys.stdout.write(report(seen))
    return DONE


if __name__ == "__main__":
    main()
