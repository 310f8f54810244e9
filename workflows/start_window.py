"""How many children a run starts at once: what one workflow task schedules has to fit one message to the server."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import TypeVar

STARTED_BYTES = 1024 * 1024  # inputs of children whose start is not confirmed: a message to the server holds 4 MiB
STARTS_AT_ONCE = 50  # and their number: what one workflow task does must take less than a second

T = TypeVar("T")


class StartWindow:
    """The children whose start the server has not confirmed yet: at most STARTS_AT_ONCE, of STARTED_BYTES together.

    The others wait, first come, first served. A single child fits always.
    """

    def __init__(self) -> None:
        self._count = 0
        self._bytes = 0
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def lease(self, size: int) -> "StartLease":
        """Returns a place for a child with an input of that many bytes, once there is one."""
        if self._queue or not self._fits(size):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.cancelled():
                    self._queue.remove((size, turn))
                    self._admit()  # a smaller one may have waited behind it
                else:  # its turn had come in the same moment
                    self.give_back(size)
                raise
        else:
            self._take(size)
        return StartLease(self, size)

    def give_back(self, size: int) -> None:
        """Frees a place."""
        self._count -= 1
        self._bytes -= size
        self._admit()

    def _admit(self) -> None:
        while self._queue and self._fits(self._queue[0][0]):
            size, turn = self._queue.popleft()
            self._take(size)
            turn.set_result(None)

    def _take(self, size: int) -> None:
        self._count += 1
        self._bytes += size

    def _fits(self, size: int) -> bool:
        within = self._count < STARTS_AT_ONCE and self._bytes + size <= STARTED_BYTES
        return within or not self._count


class StartLease:
    """A place in the window, held until the child's start is confirmed."""

    def __init__(self, window: StartWindow, size: int) -> None:
        self._window = window
        self._size: int | None = size

    async def until_started(self, start: Awaitable[T]) -> T:
        """Awaits a start, and frees the place whatever comes of it."""
        try:
            return await start
        finally:
            size, self._size = self._size, None
            if size is not None:
                self._window.give_back(size)
