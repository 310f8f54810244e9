"""Child processes of one kind, shared fairly between the runs of a Worker."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar
from weakref import WeakValueDictionary

from activities.bounded.line_process import Json, LineProcess
from supervision import limits

T = TypeVar("T")


class FairPool:
    """Up to `size` processes; an owner, such as a run, has one question open at a time, and owners take turns.

    Whoever is next and has waited for `patience` gets one of `extra` further processes. A process that ends, of a
    timeout or for lack of memory, is replaced at the next question.
    """

    def __init__(
        self, start: Callable[[], LineProcess], size: int, extra: int = 0, patience: timedelta = timedelta(0)
    ) -> None:
        """`start` blocks until the process serves; what it raises, the asking method raises."""
        self._start = start
        self._slots = _Slots(size, extra, patience.total_seconds())
        self._threads = ThreadPoolExecutor(size + extra, thread_name_prefix="child-process")
        self._owners: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._idle: deque[LineProcess] = deque()
        self._closing = threading.Lock()
        self._closed = False

    async def ask(self, owner: str, question: object, seconds: float) -> Json | None:
        """Returns the answer of a process; None where it had none within `seconds` or died.

        Raises RecursionError for a question that is nested too deeply to be sent.
        """
        line = json.dumps(question).encode()
        return await self._in_turn(owner, lambda: self._ask(line, seconds))

    async def warm(self) -> None:
        """Returns once a process serves."""
        await self._in_turn("", lambda: self._give_back(self._take()))

    def close(self) -> None:
        """Ends the idle processes; those at work end with their question."""
        with self._closing:
            self._closed = True
            while self._idle:
                self._idle.pop().end()

    async def _in_turn(self, owner: str, work: Callable[[], T]) -> T:
        async with self._owners.setdefault(owner, asyncio.Lock()):
            await self._slots.acquire()
            running = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(self._threads, work))
            running.add_done_callback(self._done)
            return await asyncio.shield(running)  # a cancelled caller's thread is still at work: it keeps its slot

    def _done(self, running: "asyncio.Future[T]") -> None:
        if not running.cancelled():
            running.exception()  # a cancelled caller does not look at it
        self._slots.release()

    def _ask(self, line: bytes, seconds: float) -> Json | None:
        process = self._take()
        answer = process.ask(line, seconds + limits.CHILD_GRACE.total_seconds())
        if answer is not None:
            self._give_back(process)
        return answer

    def _take(self) -> LineProcess:
        with self._closing:
            if self._idle:
                return self._idle.pop()
        return self._start()

    def _give_back(self, process: LineProcess) -> None:
        with self._closing:
            if not self._closed:
                self._idle.append(process)
                return
        process.end()


class _Slots:
    """A semaphore, first come first served, that has `extra` more for whoever waited for `patience` seconds."""

    def __init__(self, size: int, extra: int, patience: float) -> None:
        self._size = size
        self._extra = extra
        self._patience = patience
        self._busy = 0
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()

    async def acquire(self) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append((turn, loop.time() + self._patience))
        self._grant()
        if not turn.done():
            loop.call_later(self._patience, self._grant)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn came together with the cancellation
                self.release()
            raise

    def release(self) -> None:
        self._busy -= 1
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            turn, long_wait = self._waiting[0]
            waited = turn.get_loop().time() >= long_wait
            if not turn.cancelled():
                if self._busy >= self._size + (self._extra if waited else 0):
                    return
                self._busy += 1
                turn.set_result(None)
            self._waiting.popleft()
