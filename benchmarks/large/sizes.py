"""The large sizes: what is run, and what has to hold."""

from dataclasses import dataclass

from benchmarks.rows import Row

LONGEST_TASK = 3.0  # seconds a workflow task may take, of the server's ten


@dataclass(frozen=True)
class Size:
    """A row of large runs; with `killed` the Worker process is killed once that share of all calls is answered."""

    name: str
    row: Row
    killed: float | None = None


SIZES = [
    Size("deep", Row("two runs of 1,000 subtasks, kill -9", 1000, 0, 1.0, runs=2, at_once=2), killed=0.5),
    Size("many", Row("24 runs of 120 subtasks, kill -9", 120, 0, 1.0, runs=24, at_once=24), killed=0.5),
    Size("wide", Row("110 subtasks, then 190 that depend on all of them", 110, 0, 1.0, dependents=190)),
]


def scaled(size: Size, share: float) -> Size:
    """Returns the size with that share of its subtasks."""
    row = size.row
    smaller = Row(
        f"{row.name}, scaled by {share:g}",
        max(1, round(row.agents * share)),
        row.tool_turns,
        row.latency,
        runs=row.runs,
        at_once=row.at_once,
        dependents=round(row.dependents * share),
    )
    return Size(size.name, smaller, size.killed)
