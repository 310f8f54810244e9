"""The intervals of 95 % around a share that was counted on some questions."""

from collections.abc import Sequence
from math import sqrt
from random import Random  # noqa: TID251 (seeded: the same values always have the same interval)
from typing import NamedTuple

_Z = 1.959963984540054  # 95 % of a normal distribution, both sides
_RESAMPLES = 2000  # the ends of the interval are then the 50th of each side
_SEED = 20_250_101


class Interval(NamedTuple):
    """A share or a difference, with the ends of its interval."""

    value: float
    low: float
    high: float


def wilson(hits: int, total: int) -> Interval:
    """Returns the share of hits with Wilson's interval.

    It holds for few questions, and for shares of 0 and 1.
    """
    if total == 0:
        return Interval(0.0, 0.0, 1.0)
    share = hits / total
    spread = _Z * _Z / total
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * sqrt(share * (1 - share) / total + spread / total / 4) / (1 + spread)
    # At shares of 0 and 1 an end is the share itself, but for what floats lose.
    return Interval(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def paired_bootstrap(
    before: Sequence[float],
    after: Sequence[float],
    level: float = 0.95,
) -> Interval:
    """Returns the mean change of the same questions, with its interval.

    The interval is that of means over questions drawn again. Raises ValueError if there is none, or
    if they are not as many.
    """
    changes = [new - old for old, new in zip(before, after, strict=True)]
    if not changes:
        raise ValueError("there is no question to compare")
    drawn = Random(_SEED)
    total = len(changes)
    means = sorted(sum(drawn.choices(changes, k=total)) / total for _ in range(_RESAMPLES))
    tail = round((1 - level) / 2 * _RESAMPLES)
    return Interval(sum(changes) / total, means[tail], means[-1 - tail])
