"""The bench's results for people, as tables, and for machines, as JSON."""

import dataclasses
import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Sample, median, to_floor
from benchmarks.rows import ROWS
from benchmarks.systems import FLOOR_SETTINGS
from benchmarks.targets import Verdict

Value = Callable[[Sample], float]

_COLUMNS: list[tuple[str, Value, str]] = [
    ("wall s", lambda s: s.wall, ".2f"),
    ("beyond critical path s", lambda s: s.beyond, ".2f"),
    ("runs/s", lambda s: s.runs_per_second, ".2f"),
    ("calls/s", lambda s: s.calls_per_second, ".1f"),
    ("worker CPU ms/call", lambda s: s.worker_cpu, ".1f"),
    ("server CPU ms/call", lambda s: s.server_cpu, ".1f"),
    ("first call ms", lambda s: s.first_call * 1000, ".0f"),
    ("worker RSS MiB", lambda s: s.resident / 2**20, ".0f"),
    ("events, supervisor", lambda s: s.supervisor.events if s.supervisor else 0, ".0f"),
    ("events, agent", lambda s: s.agent.events if s.agent else 0, ".0f"),
    ("KiB, agent", lambda s: s.agent.bytes / 1024 if s.agent else 0, ".1f"),
]
_RATIOS: list[tuple[str, Value]] = [("beyond, to floor", lambda s: s.beyond), ("CPU, to floor", lambda s: s.cpu)]


def show(console: Console, samples: list[Sample], verdicts: list[Verdict]) -> None:
    """Prints medians, targets and failures; Markdown tables where nobody watches."""
    form = box.SIMPLE_HEAD if console.is_terminal else box.MARKDOWN
    console.print(_measured(samples, Table(box=form)))
    console.print(_judged(verdicts, Table(box=form)))
    for sample in samples:
        if sample.failed:
            console.print(f"failed: {sample.system}, {sample.row}: {sample.failed}", style="red", markup=False)


def _measured(samples: list[Sample], table: Table) -> Table:
    for name in ["row", "system"]:
        table.add_column(name, no_wrap=True)
    for name in [*(name for name, _, _ in _COLUMNS), *(name for name, _ in _RATIOS)]:
        table.add_column(name, justify="right")
    for row in ROWS:
        for system in ("floor", "project"):
            cells = [_cell(median(samples, row, system, value), form) for _, value, form in _COLUMNS]
            if not any(cells):
                continue
            if system == "project":
                cells += [_cell(to_floor(samples, row, value), ".2f") for _, value in _RATIOS]
            table.add_row(row.name, system, *cells)
    return table


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _judged(verdicts: list[Verdict], table: Table) -> Table:
    for name in ("target", "bound", "measured", "verdict"):
        table.add_column(name, justify="right" if name == "measured" else "left")
    for verdict in verdicts:
        measured = "" if verdict.measured is None else f"{verdict.measured:,.2f}".removesuffix(".00")
        words = {True: "[green]kept[/green]", False: "[red]missed[/red]", None: "not measured"}
        table.add_row(verdict.name, verdict.bound, measured, words[verdict.is_met])
    return table


def write(path: Path, samples: list[Sample], verdicts: list[Verdict]) -> None:
    """Writes every sample, the verdicts and what they were measured on."""
    document = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "versions": {name: version(name) for name in ("temporalio", "anthropic", "pydantic")},
        "floor_settings": " ".join(FLOOR_SETTINGS),
        "samples": [dataclasses.asdict(sample) for sample in samples],
        "targets": [dataclasses.asdict(verdict) for verdict in verdicts],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
