"""Rules by which new work of a role goes to its backup.

A role is replaced if work has waited too long in its pool, or if its subtasks take too long.
"""

from collections.abc import Sequence
from statistics import median

from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.team import RoleCard

_LAST = 3  # subtasks of a role by which its latency is told: one alone may be an exception


def median_seconds(reports: Sequence[SubtaskReport], role: str) -> float | None:
    """Returns the median time of a role's last subtasks, in seconds.

    None before enough of them have ended.
    """
    done = [report for report in reports if report.started_at and report.finished_at]
    ended = [report for report in done if report.role == role]
    last = sorted(ended, key=lambda report: str(report.finished_at))[-_LAST:]
    return median(report.own_seconds for report in last) if len(last) == _LAST else None


def too_slow(role: RoleCard, reports: Sequence[SubtaskReport]) -> str:
    """Returns the reason why a role is too slow for more work; empty if it is not."""
    took = median_seconds(reports, role.name) if role.latency_seconds is not None else None
    if took is None or role.latency_seconds is None or took <= role.latency_seconds:
        return ""
    return f"its last subtasks took {took:.1f} s"


def too_far_behind(role: RoleCard, waited: float) -> str:
    """Returns the reason why a role's pool is too busy for more work; empty if it is not.

    `waited` is the time for which work has waited in the pool, in seconds.
    """
    return f"pool {role.pool} is {waited:.1f} s behind" if waited > role.backlog_seconds else ""
