"""Waiting for a state, and for the end of a process."""

import asyncio
from collections.abc import Awaitable, Callable

import psutil


async def until(reached: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Returns once `reached()`; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            value = reached()
            if value if isinstance(value, bool) else await value:
                return
            await asyncio.sleep(0.02)


def lives(pid: int) -> bool:
    """True if a process is not gone; an orphan's entry stays in the table where no init process collects it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
