"""Timers that a loop keeps over its turns."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from supervision import limits


class Timers:
    """Timers by name, each set again only when its time changes: a new timer a turn would be two history events."""

    def __init__(self) -> None:
        self._set: dict[str, tuple[datetime, asyncio.Task[None]]] = {}

    def at(self, name: str, when: datetime) -> asyncio.Task[None]:
        """Returns a task that ends at `when`."""
        known = self._set.get(name)
        if known is not None and known[0] == when:
            return known[1]
        if known is not None:
            known[1].cancel()
        left = max(when - workflow.now(), limits.LEAST_CALL_TIME)
        task = asyncio.create_task(_sleep(left.total_seconds(), f"{name} at {when:%H:%M:%S} UTC"))
        self._set[name] = (when, task)
        return task

    def cancel(self) -> None:
        """Cancels all."""
        for _, task in self._set.values():
            task.cancel()


def _sleep(seconds: float, summary: str) -> Coroutine[Any, Any, None]:
    return workflow.sleep(seconds, summary=summary)
