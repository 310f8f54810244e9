"""The command behind `make bench`: a row on a system, its time and CPU; and tables of them."""

import argparse
import asyncio
import os
import statistics
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.scene import LONG, ROWS, WARM_UP, BenchModel, Row, Run, System, cpu_seconds, scene
from console.base.command import BAD_INPUT, DONE, FAILED, Access, CommandFailed, perform
from runtime.process import exit_now, say

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


@dataclass(frozen=True)
class Sample:
    """What was seen, by column; `failed` says why there is nothing to see, or nothing to trust."""

    row: str
    system: str
    values: dict[str, float] = field(default_factory=dict)
    failed: str | None = None


async def measure(system: System, model: BenchModel, row: Row, base: str) -> Sample:
    """Returns one sample; a row that fails or takes too long is a sample that says so."""
    model.prepare(row.latency)
    pids = (system.worker.pid, system.server_pid)
    before = [cpu_seconds(pid) for pid in pids]
    try:
        async with asyncio.timeout(_ROW_TIMEOUT):
            runs = await system.run(row, base)
    except Exception as error:
        why = f"{type(error).__name__}: {error} {error.__cause__ or ''}".strip()
        return Sample(row.name, system.name, failed=why)
    await asyncio.sleep(_SETTLE)
    spent = [1000 * (cpu_seconds(pid) - old) / row.model_calls for pid, old in zip(pids, before, strict=True)]
    first_call = min(entry["at"] for entry in model.ledger()) - runs[0].began
    wall = statistics.median(run.wall for run in runs)
    values = dict(zip(_COLUMNS, [wall, wall - row.critical_path, *spent, 1000 * first_call], strict=True))
    return Sample(row.name, system.name, values, _mistake(row, runs, len(model.answered())))


def _mistake(row: Row, runs: list[Run], calls: int) -> str | None:
    wrong = [run.id for run in runs if not run.ok]
    if wrong:
        return f"{len(wrong)} of {row.runs} answers miss findings, the first is {wrong[0]}"
    if calls != row.model_calls:
        return f"{calls} model calls were answered where {row.model_calls} were due"
    return None


def report(rows: list[Row], samples: list[Sample]) -> str:
    """Returns medians and failures as Markdown."""
    header = ["row", "system", *_COLUMNS, *_TO_FLOOR]
    lines = [header, ["---"] * len(header)]
    for row in rows:
        floor = _medians(samples, row.name, "floor")
        for system in dict.fromkeys(sample.system for sample in samples):
            if not (seen := _medians(samples, row.name, system)):
                continue
            cells = [format(seen[name], form) for name, form in _COLUMNS.items()]
            if floor and system != "floor":
                both = [(sum(seen[n] for n in parts), sum(floor[n] for n in parts)) for parts in _TO_FLOOR.values()]
                cells += [f"{own / its:.2f}" for own, its in both]
            lines.append([row.name, system, *cells])
    failures = [f"\nfailed: {sample.system}, {sample.row}: {sample.failed}\n" for sample in samples if sample.failed]
    return "".join([*(f"| {' | '.join(line)} |\n" for line in lines), *failures])


def _medians(samples: list[Sample], row: str, system: str) -> dict[str, float]:
    """Returns the median of each column; empty without a sample that holds."""
    seen = [s.values for s in samples if (s.row, s.system, s.failed) == (row, system, None)]
    return {name: statistics.median(values[name] for values in seen) for name in _COLUMNS} if seen else {}


def main() -> None:
    """Exit codes: 0 measured, else something did not run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what a run costs.")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds it")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in row.name]
    exit_now(perform(Access(), lambda: _run(rows, os.environ.get("SUPERVISOR_BENCH_FLOOR"))))


async def _run(rows: list[Row], folder: str | None) -> int:
    """Starts everything, measures all rows, the systems in turn, and ends everything. Returns the exit code."""
    floor = Path(folder).absolute() / _FLOOR if folder else None
    if floor and not floor.is_file():
        raise CommandFailed(BAD_INPUT, f"{floor} does not exist: SUPERVISOR_BENCH_FLOOR names the folder that has it")
    say(f"floor: {floor or 'none'}")
    samples = []
    async with scene() as place:
        systems = [await place.project(), *([await place.floor(floor)] if floor else [])]
        for system in systems:
            await place.stack.enter_async_context(system.worker)
            await measure(system, place.model, WARM_UP, f"{system.name}-warm")
        for repetition in range(_REPETITIONS):
            for number, row in enumerate(rows):
                # Each second time the other way round: what comes first on a machine is no advantage.
                for system in systems[:: -1 if repetition % 2 else 1]:
                    if system.name == "floor" and row.tool == LONG:
                        continue
                    sample = await measure(system, place.model, row, f"{system.name}-{number}-{repetition}")
                    samples.append(sample)
                    outcome = sample.failed or f"{sample.values['wall s']:.2f} s"
                    at = f"{datetime.now(UTC):%H:%M:%S} {repetition + 1}"
                    say(f"{at}  {row.name}, {system.name}: {outcome} (load {os.getloadavg()[0]:.1f})")
    sys.stdout.write(report(rows, samples))
    return FAILED if any(sample.failed for sample in samples) else DONE


if __name__ == "__main__":
    main()
