"""How long a run took, against the same work done one after the other."""

from datetime import datetime, timedelta
from graphlib import TopologicalSorter

from supervision.contract.result import SubtaskReport, Timing


def timing(reports: list[SubtaskReport], wall: float, own: float, now: datetime) -> Timing:
    """Returns the times of a run. The supervisor's `own` seconds (planning, review, synthesis) are on every path.

    Subtasks count from start to end.
    The critical path is the longest chain of dependent subtasks: no parallelism can beat it.
    """
    times = {report.id: _time(report, now) for report in reports}
    sequential = own + sum(times.values(), timedelta()).total_seconds()
    return Timing(
        wall_seconds=round(wall, 3),
        sequential_seconds=round(sequential, 3),
        critical_path_seconds=round(own + _longest_chain(reports, times).total_seconds(), 3),
        speedup=round(sequential / wall, 2) if wall > 0 else 0.0,
    )


def _time(report: SubtaskReport, now: datetime) -> timedelta:
    if report.started_at is None:
        return timedelta()
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else now
    return max(timedelta(), end - datetime.fromisoformat(report.started_at))


def _longest_chain(reports: list[SubtaskReport], times: dict[str, timedelta]) -> timedelta:
    depends_on = {report.id: [d for d in report.depends_on if d in times] for report in reports}
    chain: dict[str, timedelta] = {}
    for subtask_id in TopologicalSorter(depends_on).static_order():
        before = max((chain[d] for d in depends_on[subtask_id]), default=timedelta())
        chain[subtask_id] = times[subtask_id] + before
    return max(chain.values(), default=timedelta())
