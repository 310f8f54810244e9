"""How a parser's time grows with its text, in CPU time of this thread: other processes do not count."""

import contextlib
import gc
import time
from collections.abc import Callable
from typing import Any

NOISE = 0.02  # seconds: below it a time says nothing, and is no harm
RATIO = 3.0  # linear is 2; n log n and a cache that no longer fits stay below
TRIES = 20


def seconds(parse: Callable[[Any], object], text: Any) -> float:
    """The CPU time of one call, whatever it raises; the garbage of others is not collected meanwhile."""
    gc.disable()
    began = time.thread_time()
    with contextlib.suppress(Exception):
        parse(text)
    ended = time.thread_time()
    gc.enable()
    return ended - began


def grows_too_fast(parse: Callable[[Any], object], make: Callable[[int], Any], most: int) -> str | None:
    """Where `parse` takes more than RATIO times as long for twice the text, in steps up to `make(most)`; else None."""
    n = most
    while n > 1:
        n //= 2
    while n < most:
        small, large = make(n), make(2 * n)
        if _ratio(parse, small, large) > RATIO:
            return f"{RATIO:g} times as long for {2 * n} units as for {n}: {seconds(parse, large):.3f} s"
        n *= 2
    return None


def _ratio(parse: Callable[[Any], object], small: Any, large: Any) -> float:
    """The best of several tries: noise only ever adds time."""
    least_small = least_large = float("inf")
    ratio = 0.0
    for _ in range(TRIES):
        least_small = min(least_small, seconds(parse, small))
        least_large = min(least_large, seconds(parse, large))
        ratio = least_large / max(least_small, NOISE)
        if ratio <= RATIO:
            break
    return ratio
