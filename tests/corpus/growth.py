"""How a parser's time grows with its text, in CPU time of this thread: other processes do not count."""

import contextlib
import gc
import time
from collections.abc import Callable
from typing import Any

from tests.corpus.patterns import Found, hard_texts

NOISE = 0.02  # seconds: below it a time says nothing, and is no harm
RATIO = 3.0  # linear is 2; n log n and a cache that no longer fits stay below
TRIES = 10
LONGEST = 5.0  # CPU seconds of a parser at its cap, on a slow machine, in a child process or a thread
ON_THE_LOOP = 1.0  # and of one on the event loop, which may not be silent for longer
QUICK = 0.003  # seconds of a pattern: a linear one takes less for 2,500 characters, or shows at once that it is linear
SIZES = (20, 30, 45, 70, 110, 250, 2500)  # exponential, cubic and quadratic patterns show up at one of these


def seconds(parse: Callable[[Any], object], text: Any) -> float:
    """The CPU time of one call, whatever it raises; the garbage of others is not collected meanwhile."""
    gc.disable()
    began = time.thread_time()
    with contextlib.suppress(Exception):
        parse(text)
    ended = time.thread_time()
    gc.enable()
    return ended - began


def grows_too_fast(
    parse: Callable[[Any], object], make: Callable[[int], Any], most: int, longest: float = LONGEST
) -> str | None:
    """Where `parse` takes more than RATIO times as long for twice the text, from `make(most)` down; else None."""
    n, large = most, seconds(parse, make(most))
    if large > longest and min(seconds(parse, make(most)) for _ in range(2)) > longest:
        return f"{large:.3f} s for {n} units"
    while n > 1 and large > RATIO * NOISE:
        small = seconds(parse, make(n // 2))
        if large > RATIO * max(small, NOISE) and _ratio(parse, make(n // 2), make(n), NOISE) > RATIO:
            return f"{RATIO:g} times as long for {n} units as for {n // 2}: {large:.3f} s"
        n, large = n // 2, small
    return None


def slow_text(found: Found) -> str | None:
    """Returns the beginning of a text whose length the pattern's time outgrows; None if there is none."""
    return next((make(40) for make in hard_texts(found.pattern) if _outgrows(found, make)), None)


def _outgrows(found: Found, make: Callable[[int], str]) -> bool:
    for size in SIZES:
        text = make(size)
        if seconds(found.use, text) > QUICK and _least(found.use, text) > QUICK:
            return size < SIZES[-1] or _ratio(found.use, make(size // 2), text) > RATIO
    return False


def _least(parse: Callable[[Any], object], text: Any) -> float:
    return min(seconds(parse, text) for _ in range(3))


def _ratio(parse: Callable[[Any], object], small: Any, large: Any, noise: float = 0.0) -> float:
    """The best of several tries: noise only ever adds time, and beside other work one try may be slow by itself."""
    least_small = least_large = float("inf")
    ratio = 0.0
    for _ in range(TRIES):
        least_small = min(least_small, _least(parse, small))
        least_large = min(least_large, seconds(parse, large))
        ratio = least_large / max(least_small, noise)
        if ratio <= RATIO:
            break
    return ratio
