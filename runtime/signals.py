"""Stopping a Worker process by SIGTERM or Ctrl-C, also while its event loop is frozen."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

from runtime.process import exit_now
from runtime.watchdog import Watchdog

_STOPPED_TWICE = 130


@contextlib.contextmanager
def stopping_by_signal(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, watchdog: Watchdog) -> Iterator[None]:
    """Sets `stop` at the first signal; a second one ends the process at once.

    The handlers are Python's, not the loop's, which would never run them while it is frozen.
    """
    stopping = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        if stopping:
            exit_now(_STOPPED_TWICE)
        stopping = True
        watchdog.stopping()
        os.write(2, b"stopping: calls in flight may finish; once more to stop at once\n")  # the stream may be in use
        loop.call_soon_threadsafe(stop.set)

    before = {name: signal.signal(name, on_signal) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
