"""The times of a run: elapsed, sequential, and of the longest chain."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from graphlib import TopologicalSorter

from temporal_supervisor.supervision.contract.result import SubtaskReport, Timing


def timing(
    reports: list[SubtaskReport], wall: float, own: float, now: datetime, held: float = 0.0
) -> Timing:
    """Returns the times of a run; for `held` seconds of `wall` it waited for people.

    The supervisor's `own` time is part of every chain.
    """
    times = {report.id: _time(report, now) for report in reports}
    sequential = own + sum(times.values(), timedelta()).total_seconds()
    return Timing(
        wall_seconds=round(wall, 3),
        held_seconds=round(held, 3),
        sequential_seconds=round(sequential, 3),
        critical_path_seconds=round(own + longest_chain(reports, now)[0].total_seconds(), 3),
        speedup=round(sequential / (wall - held), 2) if wall > held else 0.0,
    )


def _time(report: SubtaskReport, now: datetime) -> timedelta:
    if report.started_at is None:
        return timedelta()
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else now
    held = timedelta(seconds=report.held_seconds)
    return max(timedelta(), end - datetime.fromisoformat(report.started_at) - held)


def longest_chain(reports: Sequence[SubtaskReport], now: datetime) -> tuple[timedelta, list[str]]:
    """Returns the slowest chain of dependencies: its time and its subtasks."""
    times = {report.id: _time(report, now) for report in reports}
    depends_on = {report.id: [d for d in report.depends_on if d in times] for report in reports}
    chains: dict[str, tuple[timedelta, list[str]]] = {}
    for subtask_id in TopologicalSorter(depends_on).static_order():
        time, before = max((chains[d] for d in depends_on[subtask_id]), default=(timedelta(), []))
        own = times[subtask_id]
        chains[subtask_id] = time + own, [*before, subtask_id] if own else before
    return max(chains.values(), default=(timedelta(), []))
