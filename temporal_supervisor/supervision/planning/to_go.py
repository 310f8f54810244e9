"""A guess at the remaining time and cost of an open run, from its ended subtasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from statistics import fmean

from temporal_supervisor.supervision.contract.plan import folded
from temporal_supervisor.supervision.contract.result import SubtaskReport

_LEAST_LEFT = 0.1  # of the usual time, of a subtask that already takes longer than that


@dataclass(frozen=True)
class RestOfPlan:
    """The remaining time of a plan, and its cost if prices are known."""

    seconds: float
    usd: float | None


def rest_of_plan(
    reports: Iterable[SubtaskReport],
    now: datetime,
    at_a_time: int,
) -> RestOfPlan | None:
    """Returns the guess; None if no subtask is open, or none has ended to judge by."""
    counted = [report for report in reports if report.counts is None and report.replaced_by is None]
    took = [seconds for seconds in map(_seconds, counted) if seconds is not None]
    open_ones = [report for report in counted if report.state in ("waiting", "running")]
    if not took or not open_ones:
        return None
    usual = fmean(took)
    left = {report.id: _left(report, usual, now) for report in open_ones}
    seconds = max(_longest_chain(open_ones, left), sum(left.values()) / at_a_time)
    subtasks_left = sum(left.values()) / usual if usual else len(left)
    return RestOfPlan(seconds, _cost(counted, subtasks_left))


def _seconds(report: SubtaskReport) -> float | None:
    """Returns the time of an ended subtask, without waits for people; None for others."""
    is_told = report.state in ("completed", "failed") and report.started_at and report.finished_at
    if not is_told:
        return None
    return max(0.0, report.own_seconds)


def _left(report: SubtaskReport, usual: float, now: datetime) -> float:
    if report.started_at is None:
        return usual
    gone = (now - datetime.fromisoformat(report.started_at)).total_seconds() - report.held_seconds
    return max(usual - gone, usual * _LEAST_LEFT)


def _longest_chain(open_ones: Sequence[SubtaskReport], left: Mapping[str, float]) -> float:
    """Returns the time of the longest chain of subtasks; a template stands for its items."""
    above = {report.id: folded(report.depends_on) for report in open_ones}
    for report in open_ones:
        if report.template:
            above.setdefault(report.template, []).append(report.id)
    done_after: dict[str, float] = {}
    try:
        for name in TopologicalSorter(above).static_order():
            before = max((done_after.get(other, 0.0) for other in above.get(name, [])), default=0.0)
            done_after[name] = before + left.get(name, 0.0)
    except CycleError:  # a plan of another build
        return max(left.values())
    return max(done_after.values())


def _cost(counted: Sequence[SubtaskReport], subtasks_left: float) -> float | None:
    """Returns the cost of subtasks by the mean of the ended ones; None without prices."""
    ended = [report.usage.usd for report in counted if _seconds(report) is not None]
    known = [usd for usd in ended if usd is not None]
    return fmean(known) * subtasks_left if len(known) == len(ended) else None
