"""One measurement: a row on a system, its time, its CPU, its memory, its history; and tables of them."""

import asyncio
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from temporalio.client import Client

from benchmarks.scene import BenchModel, Row, Run, System, cpu_seconds, resident_bytes

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
