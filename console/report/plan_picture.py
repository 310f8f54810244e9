"""Where the parts of a plan lie in its picture, and the times of its subtasks in the timeline."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from itertools import pairwise

from console.report.report_data import SubtaskPart
from supervision.contract.plan import folded, template_of
from supervision.contract.result import SubtaskReport
from supervision.contract.status import TraceEvent

_MOST_LINES = 800  # more of them show nothing
_MOST_BOXES = 40  # with words in them
_LEGIBLE = (5, 158, 58, 14, 46)  # boxes in a row, their width and height, the gaps beside and below
_SMALL = (13, 58, 22, 8, 30)
_ROW_GAP = 10  # between rows of one level
_ENDS = ("done", "failed", "cancelled")  # phases without a length


@dataclass(frozen=True)
class Box:
    """A subtask in the picture."""

    report: SubtaskReport
    x: int
    y: int


@dataclass(frozen=True)
class PlanPicture:
    """A plan as boxes in levels, each below all that it depends on; `lines` are the dependencies that are drawn."""

    width: int
    height: int
    box_width: int
    box_height: int
    is_small: bool
    boxes: list[Box]
    lines: list[tuple[int, int, int, int]]
    undrawn: int = 0


def plan_picture(reports: Sequence[SubtaskReport]) -> PlanPicture:
    """Returns the picture of a plan; the items of a template are drawn as one."""
    shown = {report.id: report for report in reports if template_of(report.id) is None}
    depends_on = {name: [d for d in folded(report.depends_on) if d in shown] for name, report in shown.items()}
    level: dict[str, int] = {}
    for name in TopologicalSorter(depends_on).static_order():
        level[name] = 1 + max((level[before] for before in depends_on[name]), default=-1)
    is_small = len(shown) > _MOST_BOXES
    in_row, width, height, beside, below = _SMALL if is_small else _LEGIBLE
    boxes: dict[str, Box] = {}
    widest = max((min(in_row, [*level.values()].count(each)) for each in {*level.values()}), default=1)
    whole, y = widest * (width + beside) + beside, beside
    for each in range(max(level.values(), default=-1) + 1):
        names = [name for name in shown if level[name] == each]
        for first in range(0, len(names), in_row):
            row = names[first : first + in_row]
            left = (whole - len(row) * (width + beside) + beside) // 2
            boxes |= {name: Box(shown[name], left + at * (width + beside), y) for at, name in enumerate(row)}
            y += height + _ROW_GAP
        y += below - _ROW_GAP
    lines = [
        (boxes[d].x + width // 2, boxes[d].y + height, boxes[name].x + width // 2, boxes[name].y)
        for name, before in depends_on.items()
        for d in before
    ]
    undrawn = len(lines) if len(lines) > _MOST_LINES else 0
    total = max(y - below + beside, height)
    return PlanPicture(whole, total, width, height, is_small, [*boxes.values()], [] if undrawn else lines, undrawn)


@dataclass(frozen=True)
class Span:
    """A row of the timeline: from and for how many per cent of the run, and the seconds."""

    name: str
    is_phase: bool
    start: float
    length: float
    seconds: float


def timeline(parts: Sequence[SubtaskPart], events: Sequence[TraceEvent], until: datetime) -> list[Span]:
    """Returns the phases of the run, then its subtasks by their beginnings."""
    phases = [(str(event.data.get("phase")), datetime.fromisoformat(event.at)) for event in events if _is_phase(event)]
    times = {part.path: times for part in parts if part.report.counts is None and (times := _times(part.report, until))}
    moments = [at for _, at in phases] + [at for both in times.values() for at in both]
    if not moments:
        return []
    if phases and phases[-1][0] not in _ENDS:
        moments.append(until)
    began, ended = min(moments), max(moments)
    whole = (ended - began).total_seconds() or 1

    def span(name: str, start: datetime, end: datetime, *, is_phase: bool) -> Span:
        at, lasted = (start - began).total_seconds(), (end - start).total_seconds()
        return Span(name, is_phase, round(100 * at / whole, 2), round(100 * lasted / whole, 2), lasted)

    own = [span(name, start, end, is_phase=True) for (name, start), (_, end) in pairwise([*phases, ("", ended)])]
    by_start = sorted(times.items(), key=lambda item: item[1])
    return [item for item in own if item.name not in _ENDS] + [
        span(path, *both, is_phase=False) for path, both in by_start
    ]


def _is_phase(event: TraceEvent) -> bool:
    return event.type == "phase" and event.subtask_id is None


def _times(report: SubtaskReport, until: datetime) -> tuple[datetime, datetime] | None:
    if report.started_at is None:
        return None
    start = datetime.fromisoformat(report.started_at)
    return start, max(start, datetime.fromisoformat(report.finished_at) if report.finished_at else until)
