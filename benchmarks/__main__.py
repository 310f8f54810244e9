"""The command behind `make bench`: a row on a system, its time, CPU, memory and history; and tables of them."""

import argparse
import asyncio
import dataclasses
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from temporalio.client import Client

from benchmarks.scene import (
    FLOOR_SETTINGS,
    ROWS,
    WARM_UP,
    BenchModel,
    Row,
    Run,
    System,
    cpu_seconds,
    measured,
    resident_bytes,
    scene,
    shorter,
)
from runtime.process import exit_now, say

_ROW_TIMEOUT = 300.0  # seconds; the longest row takes ten on two cores
_SETTLE = 1.0  # seconds between rows: the server's work after a run belongs to that run


@dataclass(frozen=True)
class Sample:
    """What was seen; times in seconds, CPU in milliseconds per model call, memory in bytes.

    `events` are those of the first run's supervisor and all its worker agents, `agent_*` the mean of an agent.
    `failed` says why there is nothing to see; the numbers are then zero.
    """

    row: str
    system: str
    wall: float = 0.0
    beyond: float = 0.0
    worker_cpu: float = 0.0
    server_cpu: float = 0.0
    first_call: float = 0.0
    resident: float = 0.0
    events: float = 0.0
    agent_events: float = 0.0
    agent_kib: float = 0.0
    load: float = 0.0
    failed: str | None = None

    @property
    def cpu(self) -> float:
        """Milliseconds of CPU per model call, Worker and server."""
        return self.worker_cpu + self.server_cpu


Value = Callable[[Sample], float]

_COLUMNS: list[tuple[str, Value, str]] = [
    ("wall s", lambda s: s.wall, ".2f"),
    ("beyond critical path s", lambda s: s.beyond, ".2f"),
    ("worker CPU ms/call", lambda s: s.worker_cpu, ".1f"),
    ("server CPU ms/call", lambda s: s.server_cpu, ".1f"),
    ("first call ms", lambda s: s.first_call * 1000, ".0f"),
    ("worker RSS MiB", lambda s: s.resident / 2**20, ".0f"),
    ("events", lambda s: s.events, ".0f"),
    ("events of an agent", lambda s: s.agent_events, ".0f"),
    ("KiB of an agent", lambda s: s.agent_kib, ".1f"),
]
_TO_FLOOR: list[tuple[str, Value]] = [("beyond, to floor", lambda s: s.beyond), ("CPU, to floor", lambda s: s.cpu)]


async def measure(system: System, model: BenchModel, row: Row, base: str) -> Sample:
    """Returns one sample; a row that fails or takes too long is a sample that says so."""
    try:
        async with asyncio.timeout(_ROW_TIMEOUT):
            return await _measure(system, model, row, base)
    except Exception as error:
        why = f"{type(error).__name__}: {error} {error.__cause__ or ''}".strip()
    return Sample(row.name, system.name, failed=why, load=os.getloadavg()[0])


async def _measure(system: System, model: BenchModel, row: Row, base: str) -> Sample:
    model.prepare(row.latency)
    pids = (system.worker.pid, system.server_pid)
    before = [cpu_seconds(pid) for pid in pids]
    runs = await system.run(row, base)
    await asyncio.sleep(_SETTLE)
    spent = [1000 * (cpu_seconds(pid) - old) / row.model_calls for pid, old in zip(pids, before, strict=True)]
    ledger = model.ledger()
    own, *agents = await _histories(system.client, runs[0].id)
    wall = statistics.median(run.wall for run in runs)
    return Sample(
        row=row.name,
        system=system.name,
        wall=wall,
        beyond=wall - row.critical_path,
        worker_cpu=spent[0],
        server_cpu=spent[1],
        first_call=min(entry["at"] for entry in ledger) - runs[0].began,
        resident=resident_bytes(system.worker.pid),
        events=own[0] + sum(events for events, _ in agents),
        agent_events=statistics.mean(events for events, _ in agents),
        agent_kib=statistics.mean(kib for _, kib in agents),
        load=os.getloadavg()[0],
        failed=_mistake(row, runs, len(model.answered())),
    )


async def _histories(client: Client, run_id: str) -> list[tuple[float, float]]:
    """Returns events and KiB of a run's own history, then those of its children."""

    async def size(workflow_id: str) -> tuple[float, float]:
        info = (await client.get_workflow_handle(workflow_id).describe()).raw_description.workflow_execution_info
        return info.history_length, info.history_size_bytes / 1024

    children = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        async for event in client.get_workflow_handle(run_id).fetch_history_events()
        if event.HasField("start_child_workflow_execution_initiated_event_attributes")
    ]
    return [await size(workflow_id) for workflow_id in (run_id, *children)]


def _mistake(row: Row, runs: list[Run], calls: int) -> str | None:
    wrong = [run.id for run in runs if not run.ok]
    if wrong:
        return f"{len(wrong)} of {row.runs} answers miss findings, the first is {wrong[0]}"
    if calls != row.model_calls:
        return f"{calls} model calls were answered where {row.model_calls} were due"
    return None


def report(rows: list[Row], samples: list[Sample]) -> str:
    """Returns medians and failures as Markdown."""
    systems = list(dict.fromkeys(sample.system for sample in samples))
    of = {
        (row.name, system): [s for s in samples if (s.row, s.system, s.failed) == (row.name, system, None)]
        for row in rows
        for system in systems
    }
    header = ["row", "system", *(name for name, _, _ in _COLUMNS), *(name for name, _ in _TO_FLOOR)]
    medians = []
    for (row, system), seen in of.items():
        if seen:
            cells = [format(_median(seen, value), form) for _, value, form in _COLUMNS]
            if system != "floor" and (floor := of.get((row, "floor"))):
                cells += [f"{_median(seen, value) / _median(floor, value):.2f}" for _, value in _TO_FLOOR]
            medians.append([row, system, *cells])
    parts = [_table(header, medians)]
    parts += [f"failed: {s.system}, {s.row}: {s.failed}\n" for s in samples if s.failed]
    return "\n".join(parts)


def _table(header: list[str], lines: list[list[str]]) -> str:
    filled = [line + [""] * (len(header) - len(line)) for line in (header, ["---"] * len(header), *lines)]
    return "".join(f"| {' | '.join(line)} |\n" for line in filled)


def _median(samples: list[Sample], value: Value) -> float:
    return statistics.median(map(value, samples))


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
