"""Intervals of 95 % for counted shares, and the probability of a change by chance."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import sqrt
from random import Random  # noqa: TID251 (seeded: the same values always have the same interval)
from typing import NamedTuple

_Z = 1.959963984540054  # 95 % of a normal distribution, both sides
_RESAMPLES = 2000  # the ends of the interval are then the 50th of each side
_SEED = 20_250_101
_ALL_SIGNS = 11  # changes whose signs are all tried: 2,048; of more, as many are drawn
_FLIPS = 4000
_EXACT = 1e-9  # what floats lose


class Interval(NamedTuple):
    """A share or a difference, with the bounds of its interval."""

    value: float
    low: float
    high: float


def wilson(hits: int, total: int) -> Interval:
    """Returns the share of hits with Wilson's interval, also for few hits or questions."""
    if total == 0:
        return Interval(0.0, 0.0, 1.0)
    share = hits / total
    spread = _Z * _Z / total
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * sqrt(share * (1 - share) / total + spread / total / 4) / (1 + spread)
    # At shares of 0 and 1 an end is the share itself, but for what floats lose.
    return Interval(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)))


def paired_bootstrap(before: Sequence[float], after: Sequence[float]) -> Interval:
    """Returns the mean change over questions, with its interval by resampling them.

    Raises ValueError without questions, or if the two numbers of questions differ.
    """
    changes = [new - old for old, new in zip(before, after, strict=True)]
    if not changes:
        raise ValueError("there is no question to compare")
    drawn = Random(_SEED)
    total = len(changes)
    means = sorted(sum(drawn.choices(changes, k=total)) / total for _ in range(_RESAMPLES))
    tail = round(0.025 * _RESAMPLES)
    return Interval(sum(changes) / total, means[tail], means[-1 - tail])


def chance_of_loss(losses: Sequence[tuple[float, float]]) -> float:
    """Returns the probability of losses at least this large without a real change.

    Each question has two losses: in right answers and in flagged ones. Without a change each pair
    could have been the other way round, so the signs of pairs are varied. The larger of the two
    sums counts, in units of its own spread, so that the probability holds for both together.
    """
    changed = [pair for pair in losses if any(pair)]
    spreads = [sqrt(sum(pair[side] ** 2 for pair in changed)) or 1.0 for side in (0, 1)]
    scaled = [(pair[0] / spreads[0], pair[1] / spreads[1]) for pair in changed]
    seen = _larger_sum(scaled, [1] * len(scaled)) - _EXACT
    hits = [_larger_sum(scaled, signs) >= seen for signs in _signs(len(scaled))]
    # The observed signs are one of those that are drawn.
    is_drawn = len(scaled) > _ALL_SIGNS
    return (sum(hits) + is_drawn) / (len(hits) + is_drawn)


def _signs(count: int) -> Iterator[Sequence[int]]:
    if count <= _ALL_SIGNS:
        yield from product((1, -1), repeat=count)
        return
    drawn = Random(_SEED)
    for _ in range(_FLIPS):
        yield drawn.choices((1, -1), k=count)


def _larger_sum(pairs: Sequence[tuple[float, float]], signs: Sequence[int]) -> float:
    first = sum(sign * pair[0] for pair, sign in zip(pairs, signs, strict=True))
    second = sum(sign * pair[1] for pair, sign in zip(pairs, signs, strict=True))
    return max(first, second)
