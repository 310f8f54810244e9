"""What the project promises of its own cost, and the targets that a bench met."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import rows
from benchmarks.measure import Sample, divided, median, to_floor
from benchmarks.rows import Row
from supervision import limits


@dataclass(frozen=True)
class Verdict:
    """A target and its measurement; `is_met` is None when it could not be measured."""

    name: str
    bound: str
    measured: float | None
    is_met: bool | None


def verdicts(samples: list[Sample]) -> list[Verdict]:
    """Returns all targets; those that compare with the floor are not judged without one."""

    def own(row: Row, value: Callable[[Sample], float]) -> float | None:
        return median(samples, row, "project", value)

    def ratio(row: Row, value: Callable[[Sample], float]) -> float | None:
        return to_floor(samples, row, value)

    return [
        at_most(
            "time beyond the critical path, 100 agents, to the floor", 1.5, ratio(rows.FAN_100, lambda s: s.beyond)
        ),
        at_most("wall of 10 agents at 1 s, to the critical path", 1.3, own(rows.SLOW_10, _to_ideal)),
        at_most("wall with roles of the plan's own, to a team's", 1.15, divided(*_walls(own))),
        at_most("CPU per model call, 100 agents, to the floor", 1.6, ratio(rows.FAN_100, lambda s: s.cpu)),
        at_least(
            "small runs per second, 8 at a time, to the floor", 0.6, ratio(rows.SMALL_8, lambda s: s.runs_per_second)
        ),
        at_most("start to first model call, ms", 150, own(rows.SMALL_1, lambda s: s.first_call * 1000)),
        at_most(
            "history of 40 tool turns, to that of 10",
            4.5,
            divided(own(rows.TURNS_40, _bytes), own(rows.TURNS_10, _bytes)),
        ),
        at_most("largest payload in history, bytes", limits.PAYLOAD_AIM_BYTES, _largest(samples)),
    ]


def at_most(name: str, bound: float, measured: float | None) -> Verdict:
    """Returns a target that is met when the measured value is not above the bound."""
    return Verdict(name, f"at most {bound:g}", measured, None if measured is None else measured <= bound)


def at_least(name: str, bound: float, measured: float | None) -> Verdict:
    """Returns a target that is met when the measured value is not below the bound."""
    return Verdict(name, f"at least {bound:g}", measured, None if measured is None else measured >= bound)


def _to_ideal(sample: Sample) -> float:
    return sample.wall / rows.SLOW_10.critical_path


def _walls(own: Callable[[Row, Callable[[Sample], float]], float | None]) -> tuple[float | None, float | None]:
    return own(rows.DYNAMIC_10, lambda s: s.wall), own(rows.FAN_10, lambda s: s.wall)


def _bytes(sample: Sample) -> float:
    return sample.agent.bytes if sample.agent else 0


def _largest(samples: list[Sample]) -> float | None:
    largest = [history.largest_payload for s in samples for history in (s.supervisor, s.agent) if history]
    sizes = [size for size in largest if size is not None]
    return max(sizes) if sizes else None
