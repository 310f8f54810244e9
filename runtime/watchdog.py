"""The end of a Worker process: by a signal, in order, or by its watchdog, when it is frozen: Temporal survives that.

While its event loop is frozen, a process still polls for tasks, and keeps what it takes from healthy ones.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import NoReturn

from runtime.process import exit_now
from supervision import limits

_STOPPED_TWICE = 130
FROZEN = 70
"""The exit code of a process whose event loop was silent, or whose shutdown never ended.

A process whose interpreter stands still, held by native code, is ended by SIGPROF instead: no code of ours runs then.
"""


class Watchdog:
    """A thread that ends the process, with the stacks of all threads on standard error.

    It counts its own ticks, not the clock: a process that was paused as a whole is not frozen. Each tick also winds up
    a timer of the kernel over CPU time, which rings when not even this thread gets to run: a regular expression or
    another call of native code holds the interpreter.
    """

    def __init__(self, under_way: Callable[[], str] = str) -> None:
        """`under_way` names what the process works on."""
        self._under_way = under_way
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered = threading.Event()
        self._silent_ticks = 0
        self._deadline: float | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="watchdog", daemon=True)

    def __enter__(self) -> "Watchdog":
        faulthandler.register(signal.SIGPROF, file=sys.stderr, all_threads=True, chain=True)
        _wind_up()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.unregister(signal.SIGPROF)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on `loop` must answer."""
        self._answered.set()
        self._loop = loop

    def stopping(self) -> None:
        """From now on the process has the time of a graceful shutdown, not more."""
        if self._deadline is None:
            patience = limits.GRACEFUL_SHUTDOWN + limits.SHUTDOWN_MARGIN
            self._deadline = time.monotonic() + patience.total_seconds()

    def _tick(self) -> None:
        tick, silence = limits.WATCHDOG_TICK.total_seconds(), limits.LOOP_SILENCE.total_seconds()
        while not self._done.wait(tick):
            _wind_up()
            if self._deadline is not None and time.monotonic() > self._deadline:
                _end("the shutdown does not end", self._under_way())
            self._ask()
            if self._silent_ticks * tick >= silence:
                _end(f"the event loop has been silent for {silence:g} s", self._under_way())

    def _ask(self) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        if self._answered.is_set():
            self._answered.clear()
            self._silent_ticks = 0
            with contextlib.suppress(RuntimeError):  # closed just now
                self._loop.call_soon_threadsafe(self._answered.set)
        else:
            self._silent_ticks += 1


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


def _wind_up() -> None:
    signal.setitimer(signal.ITIMER_PROF, limits.NATIVE_CPU.total_seconds())


def _end(reason: str, work: str) -> NoReturn:
    """Ends the process at once, whatever its threads do; says why, what it works on, and where its threads stand."""
    os.write(2, f"watchdog: {reason}: this process ends, others go on with its work\n".encode())
    if work:
        os.write(2, f"watchdog: under way: {work}\n".encode())
    faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)
    os._exit(FROZEN)
