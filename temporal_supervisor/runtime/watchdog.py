"""The end of a Worker process: orderly after a signal, or by its watchdog.

The watchdog ends a process whose event loop is frozen, because it would still poll, and keep the
tasks that it takes from healthy ones.
"""

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import threading
from datetime import timedelta
from types import FrameType
from typing import NoReturn

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line

# CPU time of the process in a tick: only code that holds the interpreter takes so much.
NATIVE_CPU = timedelta(seconds=10)
WATCHDOG_TICK = timedelta(seconds=1)

_NAMED = 5  # activities under way, in the last line
FROZEN = 70
"""The exit code of a process whose event loop was silent.

SIGPROF ends a process whose interpreter is blocked by native code: no code of ours runs then.
"""


class Watchdog:
    """A thread that ends a frozen process and writes the stacks of all threads.

    They are written to standard error. It counts its own ticks, not the clock, so that a process
    that was paused as a whole is not frozen. Each tick also restarts a kernel timer over CPU time,
    which fires when not even this thread gets to run: a regular expression or other native code may
    hold the interpreter.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._silent_ticks = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="watchdog", daemon=True)

    def __enter__(self) -> "Watchdog":
        faulthandler.register(signal.SIGPROF, file=sys.stderr, all_threads=True, chain=True)
        _wind_up()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.unregister(signal.SIGPROF)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins to watch the event loop."""
        self._loop = loop

    def _tick(self) -> None:
        tick = WATCHDOG_TICK.total_seconds()
        silence = limits.LOOP_SILENCE.total_seconds()
        while not self._done.wait(tick):
            _wind_up()
            if self._loop is None or self._loop.is_closed():
                continue
            if self._silent_ticks * tick >= silence:
                self._end_process()
            self._silent_ticks += 1
            with contextlib.suppress(RuntimeError):  # closed just now
                self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._silent_ticks = 0

    def _end_process(self) -> NoReturn:
        """Ends the process at once and writes the reason, its work, and the stacks of threads."""
        silent = f"the event loop has been silent for {limits.LOOP_SILENCE.total_seconds():g} s"
        ends = "this process ends, other Workers continue its work"
        os.write(2, f"watchdog: {silent}: {ends}\n".encode())
        tasks = asyncio.all_tasks(self._loop) if self._loop else ()
        names = [task.get_name() for task in tasks]
        # activities, as `heartbeat` names them
        work = [one_line(name, limits.SENTENCE_BYTES) for name in names if " of run " in name]
        os.write(2, f"watchdog: under way: {', '.join(work[:_NAMED]) or 'nothing'}\n".encode())
        faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)
        os._exit(FROZEN)


def stop_by_signal(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Sets `stop` at the first signal; a second one ends the process at once.

    That works even while the loop is frozen.
    """
    signals = (signal.SIGINT, signal.SIGTERM)

    def on_signal(number: int, frame: FrameType | None) -> None:
        for name in signals:
            signal.signal(name, signal.SIG_DFL)
        # not by the stream, which may be in use
        os.write(2, b"stopping: calls in flight may finish; once more to stop at once\n")
        loop.call_soon_threadsafe(stop.set)

    for name in signals:
        signal.signal(name, on_signal)


def _wind_up() -> None:
    signal.setitimer(signal.ITIMER_PROF, NATIVE_CPU.total_seconds())
