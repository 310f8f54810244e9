"""The waits for people of a run's subtasks: a decision wakes the work that waits for it, one timer the rest."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow


class Awaited:
    """What people are asked about the subtasks of a run: a decision wakes the work that waits for it, a timer the rest.

    One timer serves all: one each would cost two events of the history for every decision. It is set for the end that
    comes first. If that wait is decided before, the timer stays and ends for nothing, which costs less than setting
    another one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._rings_at: datetime | None = None
        self._timer: asyncio.Task[None] | None = None

    async def decided(self, sha256: str, is_decided: Callable[[], bool], until: datetime) -> None:
        """Returns once what has that hash is decided, or at the time `until`."""
        try:
            # Woken by a decision or by the timer, which may have been set for another wait: so it looks again.
            while not is_decided() and workflow.now() < until:
                self._ring_by(until)
                woken = self._waiting[sha256] = asyncio.Future()
                await woken
        finally:
            self._waiting.pop(sha256, None)
            if not self._waiting:
                self._set_none()

    def wake(self, sha256: str) -> None:
        """Wakes the work that waits for a decision about what has that hash."""
        woken = self._waiting.get(sha256)
        if woken is not None and not woken.done():
            woken.set_result(None)

    def _ring_by(self, until: datetime) -> None:
        is_set = self._timer is not None and not self._timer.done()
        if is_set and self._rings_at is not None and self._rings_at <= until:
            return
        self._set_none()
        self._rings_at = until
        self._timer = asyncio.create_task(self._ring(until - workflow.now()))

    def _set_none(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _ring(self, left: timedelta) -> None:
        await workflow.sleep(left, summary="the first wait for a person that ends by itself")
        for sha256 in self._waiting:
            self.wake(sha256)
