"""Waiting for a state."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(reached: Callable[[], bool] | Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    """Returns once `reached()`; TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            value = reached()
            if value if isinstance(value, bool) else await value:
                return
            await asyncio.sleep(0.02)
