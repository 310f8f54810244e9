"""How long a run took, against the same work done one after the other."""

from datetime import datetime

from supervision.result import SubtaskReport, Timing


def timing(reports: list[SubtaskReport], wall: float, planning: float, synthesis: float, now: datetime) -> Timing:
    """Seconds of a run: `planning` and `synthesis` are on every path, subtasks count from start to end.

    The critical path is the longest chain of dependent subtasks: no parallelism can beat it.
    """
    seconds = {report.id: _seconds(report, now) for report in reports}
    frame = planning + synthesis
    sequential = frame + sum(seconds.values())
    return Timing(
        wall_seconds=round(wall, 3),
        sequential_seconds=round(sequential, 3),
        critical_path_seconds=round(frame + _longest_chain(reports, seconds), 3),
        speedup=round(sequential / wall, 2) if wall > 0 else 0.0,
    )


def _seconds(report: SubtaskReport, now: datetime) -> float:
    if report.started_at is None:
        return 0.0
    end = datetime.fromisoformat(report.finished_at) if report.finished_at else now
    return max(0.0, (end - datetime.fromisoformat(report.started_at)).total_seconds())


def _longest_chain(reports: list[SubtaskReport], seconds: dict[str, float]) -> float:
    """Relaxes in rounds, so that the order of the plan does not matter and no recursion is deep."""
    depends_on = {report.id: [d for d in report.depends_on if d in seconds] for report in reports}
    chain = dict(seconds)
    for _ in reports:
        changed = False
        for subtask_id, dependencies in depends_on.items():
            best = seconds[subtask_id] + max((chain[d] for d in dependencies), default=0.0)
            if best > chain[subtask_id]:
                chain[subtask_id] = best
                changed = True
        if not changed:
            break
    return max(chain.values(), default=0.0)
