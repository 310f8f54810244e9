"""Heartbeats from a task of their own: they prove that the process lives and bring cancellation in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from temporalio import activity

from supervision import limits


@contextlib.asynccontextmanager
async def beating(details: Callable[[], dict[str, Any]]) -> AsyncIterator[None]:
    """Heartbeats with `details()` until the block ends; whether the call itself moves is the watchdog's matter."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(limits.HEARTBEAT_EVERY.total_seconds())
            activity.heartbeat(details())

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
