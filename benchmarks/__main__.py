"""The command behind `make bench`."""

import argparse
import os
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.measure import Bench, Sample
from benchmarks.rows import ROWS, WARM_UP, Row, shorter
from benchmarks.scene import measured, scene
from benchmarks.systems import CHECKOUT, FLOOR_SETTINGS, Floor, System
from benchmarks.targets import verdicts
from runtime.process import exit_now

_FLOOR = "reference_temporal.py"
_FLOOR_MODEL = "fake_llm.py"
_REPETITIONS = 3
_WIDE = 400  # columns: a Markdown table's row is one line


def say(line: str) -> None:
    """A line of progress on standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> None:
    """Exit codes: 0 measured, 1 something did not run (with --check: or a target is missed)."""
    options = _parser().parse_args()
    rows = [shorter(row) for row in ROWS] if options.quick else ROWS
    rows = [row for row in rows if not options.only or any(part in row.name for part in options.only)]
    floor = None if options.no_floor else _floor(options.floor)
    if floor:
        rows = [row for row in rows if not row.new_roles]  # the floor's model server writes no such plans
    say(f"floor: {floor or 'none, the rows have nothing to compare with'}")
    samples = measured(_run(rows, options.repetitions or (1 if options.quick else _REPETITIONS), floor))
    judged = verdicts(samples)
    report.show(Console(width=None if sys.stdout.isatty() else _WIDE), samples, judged)
    if options.out:
        report.write(options.out, samples, judged)
    failed = any(sample.failed for sample in samples)
    missed = options.check and any(verdict.is_met is False for verdict in judged)
    exit_now(1 if failed or missed else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what a run costs.")
    parser.add_argument("--quick", action="store_true", help="one repetition, fewer small runs")
    parser.add_argument("--repetitions", type=int, help=f"default: {_REPETITIONS}")
    parser.add_argument("--only", action="append", metavar="TEXT", help="rows whose name holds it; may be repeated")
    parser.add_argument("--floor", type=Path, help=f"folder with {_FLOOR} and {_FLOOR_MODEL}")
    parser.add_argument("--no-floor", action="store_true", help="measure the project alone")
    parser.add_argument("--out", type=Path, help="write all samples there as JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    return parser


def _floor(named: Path | None) -> Path | None:
    """Returns the folder of the floor: named, from the environment, or beside the checkout."""
    given = named or os.environ.get("SUPERVISOR_BENCH_FLOOR")
    folder = Path(given) if given else CHECKOUT.parent / "shared" / "bench"
    complete = all((folder / name).is_file() for name in (_FLOOR, _FLOOR_MODEL))
    if given and not complete:
        say(f"{folder} has no {_FLOOR} and {_FLOOR_MODEL}")
        exit_now(1)
    return folder.absolute() if complete else None


async def _run(rows: list[Row], repetitions: int, floor: Path | None) -> list[Sample]:
    """Starts everything, measures all rows, repetitions interleaved, and ends everything."""
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(scene("bench", model_script=floor / _FLOOR_MODEL if floor else None))
        systems: list[System] = [place.project()]
        if floor:
            systems.insert(0, Floor(place.folder, floor / _FLOOR, place.info.address, place.model.url))
            say(f"floor settings: {' '.join(FLOOR_SETTINGS)}, no heartbeats")
        for system in systems:
            await stack.enter_async_context(system.worker)
        bench = Bench(place.info.pid, place.model)
        for system in systems:
            await bench.measure(system, WARM_UP, f"{system.name}-warm")
        return await _all(bench, systems, rows, repetitions)


async def _all(bench: Bench, systems: list[System], rows: list[Row], repetitions: int) -> list[Sample]:
    samples = []
    for repetition in range(repetitions):
        for number, row in enumerate(rows):
            for system in systems:
                if system.name == "floor" and not row.floor:
                    continue
                base = f"{system.name}-{number}-{repetition}"
                sample = await bench.measure(system, row, base)
                samples.append(sample)
                _say(repetition, sample)
    return samples


def _say(repetition: int, sample: Sample) -> None:
    at = f"{datetime.now(UTC):%H:%M:%S} {repetition + 1}"
    outcome = sample.failed or f"{sample.wall:.2f} s, {sample.worker_cpu:.1f} + {sample.server_cpu:.1f} ms CPU a call"
    say(f"{at}  {sample.row}, {sample.system}: {outcome} (load {sample.load:.1f})")


if __name__ == "__main__":
    main()
