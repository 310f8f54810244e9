"""How long an event loop did not answer."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

BEAT = 0.02  # seconds
SILENCE = 1.0  # seconds for which an event loop may be silent


class LoopMonitor:
    """A beat on the event loop; `longest` is the longest time between two of them.

    Of each time the smaller one counts: by the clock, or of the CPU of this process. By the clock alone a loop is
    silent, too, while other programs have the machine, which is no fault of ours. What is one uses CPU time of this
    process until the loop goes on: a callback that computes, or native code of another thread that holds the
    interpreter. CPU time alone would count threads that compute beside a loop that answers.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Beats until it is cancelled."""
        clock, used = time.perf_counter(), time.process_time()
        while True:
            await asyncio.sleep(BEAT)
            silent = min(time.perf_counter() - clock - BEAT, time.process_time() - used)
            self.longest = max(self.longest, silent)
            clock, used = time.perf_counter(), time.process_time()


@contextlib.asynccontextmanager
async def monitored() -> AsyncIterator[LoopMonitor]:
    """Watches the running event loop for the time of an `async with` block."""
    monitor = LoopMonitor()
    watching = asyncio.create_task(monitor.watch())
    await asyncio.sleep(BEAT)
    try:
        yield monitor
        await asyncio.sleep(2 * BEAT)  # a beat after the last silence
    finally:
        watching.cancel()
