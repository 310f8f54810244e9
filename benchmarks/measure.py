"""One measurement: a row on a system, its time, its CPU, its memory."""

import asyncio
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import limits
from benchmarks.history import History
from benchmarks.model_control import ModelControl
from benchmarks.processes import cpu_seconds, resident_bytes
from benchmarks.rows import Row
from benchmarks.systems import Runs, System


@dataclass(frozen=True)
class Sample:
    """What was seen; times in seconds, CPU in milliseconds per model call, memory in bytes.

    `failed` says why there is nothing to see; the numbers are then zero.
    """

    row: str
    system: str
    wall: float = 0.0
    beyond: float = 0.0
    runs_per_second: float = 0.0
    calls_per_second: float = 0.0
    worker_cpu: float = 0.0
    server_cpu: float = 0.0
    first_call: float = 0.0
    in_flight: int = 0
    resident: int = 0
    supervisor: History | None = None
    agent: History | None = None
    load: float = 0.0
    failed: str | None = None

    @property
    def cpu(self) -> float:
        """Milliseconds of CPU per model call, Worker and server."""
        return self.worker_cpu + self.server_cpu


class Bench:
    """Measures on one Temporal server and one model server."""

    def __init__(self, server_pid: int, model: ModelControl) -> None:
        self._server_pid = server_pid
        self._model = model

    async def measure(self, system: System, row: Row, base: str) -> Sample:
        """Returns one sample; a row that fails is a sample that says so."""
        try:
            async with asyncio.timeout(limits.ROW_TIMEOUT.total_seconds()):
                return await self._measure(system, row, base)
        except TimeoutError:
            why = f"not done within {limits.ROW_TIMEOUT}"
        except Exception as error:
            why = f"{type(error).__name__}: {error} {error.__cause__ or ''}".strip()
        return Sample(row.name, system.name, failed=why, load=os.getloadavg()[0])

    async def _measure(self, system: System, row: Row, base: str) -> Sample:
        self._model.prepare(row.latency)
        pids = (system.worker.pid, self._server_pid)
        before = [cpu_seconds(pid) for pid in pids]
        runs = await system.run(row, base)
        await asyncio.sleep(limits.SETTLE.total_seconds())
        worker, server = (
            1000 * (cpu_seconds(pid) - old) / row.model_calls for pid, old in zip(pids, before, strict=True)
        )
        stats = self._model.stats()
        supervisor, agent = await system.histories(runs)
        walls = statistics.median(run.wall for run in runs.runs)
        return Sample(
            row=row.name,
            system=system.name,
            wall=walls,
            beyond=walls - row.critical_path,
            runs_per_second=row.runs / runs.wall,
            calls_per_second=row.model_calls / runs.wall,
            worker_cpu=worker,
            server_cpu=server,
            first_call=statistics.median(stats["runs"][run.id]["first"] - run.began for run in runs.runs),
            in_flight=stats["in_flight_max"],
            resident=resident_bytes(system.worker.pid),
            supervisor=supervisor,
            agent=agent,
            load=os.getloadavg()[0],
            failed=_mistake(row, runs, stats["total_completed"], stats["repeated_completed"]),
        )


def _mistake(row: Row, runs: Runs, calls: int, repeated: int) -> str | None:
    wrong = [run.id for run in runs.runs if not run.ok]
    if wrong:
        return f"{len(wrong)} of {row.runs} answers miss findings, the first is {wrong[0]}"
    if calls != row.model_calls or repeated:
        return f"{calls} model calls where {row.model_calls} were due, {repeated} of them repeated"
    return None


def median(samples: list[Sample], row: Row, system: str, value: Callable[[Sample], float]) -> float | None:
    """Returns the median over the repetitions that worked, None when none did."""
    values = [value(s) for s in samples if (s.row, s.system) == (row.name, system) and s.failed is None]
    return statistics.median(values) if values else None


def to_floor(samples: list[Sample], row: Row, value: Callable[[Sample], float]) -> float | None:
    """Returns the project's median divided by the floor's, None when a side is missing."""
    return divided(median(samples, row, "project", value), median(samples, row, "floor", value))


def divided(part: float | None, whole: float | None) -> float | None:
    """Returns the ratio, None when a side is missing."""
    return None if part is None or not whole else part / whole
