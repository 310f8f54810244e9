"""Heartbeats from a task of their own: they prove that the process lives and bring cancellation in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from supervision import limits
from supervision.errors import ErrorKind

Details = Callable[[], dict[str, Any]]


class _Beat:
    details: Details = dict


_beat: ContextVar[_Beat] = ContextVar("beat")


def show(details: Details) -> None:
    """Lets the heartbeats of this attempt carry `details()` from now on."""
    if beat := _beat.get(None):
        beat.details = details


@contextlib.asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Heartbeats until the block ends. The idle watchdog, not the heartbeat, detects a stalled call.

    If the activity's workflow is gone, its cancellation ends as a benign ApplicationError, which keeps stack traces of
    deliberate cancellations out of the Worker's log.
    """
    shown = _Beat()

    async def beat() -> None:
        while True:
            await asyncio.sleep(limits.HEARTBEAT_EVERY.total_seconds())
            activity.heartbeat(shown.details())

    token = _beat.set(shown)
    task = asyncio.create_task(beat())
    try:
        yield
    except asyncio.CancelledError:
        reason = activity.cancellation_details()
        if reason and reason.not_found:
            raise ApplicationError(
                "stopped: its workflow is gone",
                type=ErrorKind.CANCELLED,
                non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,
            ) from None
        raise
    finally:
        task.cancel()
        _beat.reset(token)
