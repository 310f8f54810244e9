"""Waiting for a state, and for the end of a process."""

import asyncio
from collections.abc import Awaitable, Callable

import psutil

_SOON, _LATER = 0.02, 0.15


async def until(reached: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Returns once `reached()`; TimeoutError after `seconds`."""
    pause = _SOON
    async with asyncio.timeout(seconds):
        while True:
            value = reached()
            if not isinstance(value, bool):
                # Asked a hundred times a second, a server and a Worker have time for little else.
                value, pause = await value, min(1.5 * pause, _LATER)
            if value:
                return
            await asyncio.sleep(pause)


def lives(pid: int) -> bool:
    """True if a process is not gone; an orphan's entry stays in the table where no init process collects it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
