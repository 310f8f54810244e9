"""The end of a Worker process: in order after a signal, or by its watchdog when its event loop is frozen.

A frozen process still polls, and keeps the tasks that it takes from healthy ones. Its work stands in a file that it
holds locked: a file that can be locked belongs to a process that has ended.
"""

import asyncio
import contextlib
import faulthandler
import fcntl
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import NoReturn

from runtime.process import cache_dir, exit_now
from supervision.base import limits
from supervision.base.text import one_line

NATIVE_CPU = timedelta(seconds=10)  # of the process in a tick: only code that holds the interpreter takes so much
WATCHDOG_TICK = timedelta(seconds=1)
BEAT = timedelta(seconds=5)

_STOPPED_TWICE = 130
_NAMED = 5  # activities in one line, the oldest first
_NAME_BYTES = 300
_SUFFIX = ".work"
FROZEN = 70
"""The exit code of a process whose event loop was silent, or whose shutdown never ended.

SIGPROF ends a process whose interpreter is blocked by native code: no code of ours runs then.
"""


class Watchdog:
    """A thread that ends the process, with the stacks of all threads on standard error.

    It counts its own ticks, not the clock: a process that was paused as a whole is not frozen. Each tick also winds up
    a timer of the kernel over CPU time, which rings when not even this thread gets to run: a regular expression or
    another call of native code holds the interpreter.
    """

    def __init__(self, words: "LastWords | None" = None) -> None:
        self.words = words or LastWords()
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

    def __exit__(self, *_: object) -> None:
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
        tick, silence = WATCHDOG_TICK.total_seconds(), limits.LOOP_SILENCE.total_seconds()
        while not self._done.wait(tick):
            _wind_up()
            if self._deadline is not None and time.monotonic() > self._deadline:
                _end("the shutdown does not end", self.words.line())
            self._ask()
            if self._silent_ticks * tick >= silence:
                _end(f"the event loop has been silent for {silence:g} s", self.words.line())

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
    """Sets `stop` at the first signal; a second one ends the process at once, even while the loop is frozen."""
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
    signal.setitimer(signal.ITIMER_PROF, NATIVE_CPU.total_seconds())


def _end(reason: str, work: str) -> NoReturn:
    """Ends the process at once; says why, what it works on, and where its threads stand."""
    os.write(2, f"watchdog: {reason}: this process ends, other Workers continue its work\n".encode())
    if work:
        os.write(2, f"watchdog: under way: {work}\n".encode())
    faulthandler.dump_traceback(file=sys.__stderr__ or 2, all_threads=True)
    os._exit(FROZEN)


class LastWords:
    """The activities under way in this process, but for those that only wait. `file` begins with a line of them.

    Its time is that of the last beat, which health checks read: the start of the epoch until the process serves.
    """

    def __init__(self, file: int | None = None) -> None:
        self._file = file
        self._under_way: dict[object, str] = {}

    def begins(self, activity_type: str, workflow_id: str) -> Callable[[], None]:
        """Remembers what begins until the function that it returns is called."""
        key, since = object(), datetime.now(UTC).isoformat(timespec="seconds")
        self._under_way[key] = one_line(f"{activity_type} of run {workflow_id} (since {since})", _NAME_BYTES)
        self._write()

        def ends() -> None:
            del self._under_way[key]
            self._write()

        return ends

    def beat(self) -> None:
        """Marks that the process serves and that its event loop answers."""
        if self._file is not None:
            os.utime(self._file)

    def line(self) -> str:
        """Returns what is under way in one line; empty if nothing is."""
        work = tuple(self._under_way.values())
        more = [f"{len(work) - _NAMED} more"] if len(work) > _NAMED else []
        return ", ".join([*work[:_NAMED], *more])

    def _write(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk: then the file says less
                os.pwrite(self._file, f"{os.getpid()} {self.line()}\n".encode(), 0)


@contextlib.contextmanager
def last_words(report: Callable[[str], None]) -> Iterator[LastWords]:
    """Yields the last words of this process, and reports those of processes that have ended, in a line each."""
    with contextlib.ExitStack() as stack:
        file = None
        with contextlib.suppress(OSError):
            folder = cache_dir() / "workers"
            folder.mkdir(mode=0o700, exist_ok=True)
            for line in _left(folder):
                report(line)
            file = stack.enter_context(_own_file(folder))
        yield LastWords(file)


@contextlib.contextmanager
def _own_file(folder: Path) -> Iterator[int]:
    file, name = tempfile.mkstemp(dir=folder)
    path = Path(name)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.utime(file, (0, 0))
        path = path.rename(path.with_suffix(_SUFFIX))  # only now: others lock what they find by this name
        yield file
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _left(folder: Path) -> list[str]:
    """Returns what processes that are gone had under way, and removes their files."""
    lines = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
            path.unlink()
            pid, _, work = file.readline().decode("utf-8", "replace").rstrip("\n").partition(" ")
            if work:
                lines.append(f"the Worker process before this one (pid {pid}) ended in: {work}")
    return lines
