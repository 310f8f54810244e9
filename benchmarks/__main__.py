"""The command behind `make bench`."""

import argparse
import dataclasses
import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.measure import Sample, measure, report
from benchmarks.scene import FLOOR_SETTINGS, ROWS, WARM_UP, Row, measured, scene, shorter
from runtime.process import exit_now, say

_FLOOR = "reference_temporal.py"
_REPETITIONS = 3


def main() -> None:
    """Exit codes: 0 measured, 1 something did not run."""
    options = _parser().parse_args()
    rows = [shorter(row) for row in ROWS] if options.quick else ROWS
    rows = [row for row in rows if not options.only or any(part in row.name for part in options.only)]
    floor = _floor(options.floor or os.environ.get("SUPERVISOR_BENCH_FLOOR"))
    repetitions = options.repetitions or (1 if options.quick else _REPETITIONS)
    say(f"floor: {floor or 'none'}")
    samples = measured(_run(rows, repetitions, floor))
    sys.stdout.write(report(rows, samples))
    if options.out:
        _write(options.out, samples)
    exit_now(1 if any(sample.failed for sample in samples) else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what a run costs.")
    parser.add_argument("--quick", action="store_true", help="one repetition, fewer small runs")
    parser.add_argument("--repetitions", type=int, metavar="N", help=f"default: {_REPETITIONS}")
    parser.add_argument("--only", action="append", metavar="TEXT", help="rows whose name holds it; may be repeated")
    parser.add_argument("--floor", help=f"folder with {_FLOOR}; else SUPERVISOR_BENCH_FLOOR")
    parser.add_argument("--out", type=Path, help="write all samples there as JSON")
    return parser


def _floor(folder: str | None) -> Path | None:
    """Returns the program of the floor in the folder that is named."""
    program = Path(folder).absolute() / _FLOOR if folder else None
    if program and not program.is_file():
        say(f"{program} does not exist: --floor names the folder that has it")
        exit_now(1)
    return program


async def _run(rows: list[Row], repetitions: int, floor: Path | None) -> list[Sample]:
    """Starts everything, measures all rows, the systems in turn, and ends everything."""
    async with scene("bench") as place:
        systems = [place.project()]
        if floor:
            systems.append((await place.beside("floor")).floor(floor))
        for system in systems:
            await place.stack.enter_async_context(system.worker)
            await measure(system, place.model, WARM_UP, f"{system.name}-warm")
        samples = []
        for repetition in range(repetitions):
            for number, row in enumerate(rows):
                # Each second time the other way round: what comes first on a machine is no advantage.
                for system in systems[:: -1 if repetition % 2 else 1]:
                    if system.name == "floor" and not row.floor:
                        continue
                    base = f"{system.name}-{number}-{repetition}"
                    samples.append(await measure(system, place.model, row, base))
                    _say(repetition, samples[-1])
        return samples


def _say(repetition: int, sample: Sample) -> None:
    at = f"{datetime.now(UTC):%H:%M:%S} {repetition + 1}"
    outcome = sample.failed or f"{sample.wall:.2f} s, {sample.worker_cpu:.1f} + {sample.server_cpu:.1f} ms CPU a call"
    say(f"{at}  {sample.row}, {sample.system}: {outcome} (load {sample.load:.1f})")


def _write(path: Path, samples: list[Sample]) -> None:
    """Writes every sample and what it was measured on."""
    document = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "versions": {name: version(name) for name in ("temporalio", "anthropic", "pydantic")},
        "floor_settings": " ".join(FLOOR_SETTINGS),
        "samples": [dataclasses.asdict(sample) for sample in samples],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
