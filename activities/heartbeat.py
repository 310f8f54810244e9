"""The heartbeats of an attempt, from a task of their own: life, cancellation, and the count of deaths in the call.

A call whose process died three times in it is refused: it would end the next process, too. The count travels in the
heartbeat's details. A second attempt that finds no word of an ordinary end knows that the first one died; from then on
each says what it is about to do before it does it. While it waits for a provider or the store, no death is counted.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from temporalio import activity

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.prompt_marks import DEADLY

T = TypeVar("T")
Details = Callable[[], dict[str, Any]]
Report = Callable[[str], Awaitable[None]]


class _AttemptBeats:
    """The heartbeats of one attempt. `deaths` are those of the attempts before; `suspect` if the last left no word.

    `report` tells the run why the attempt waits for its store.
    """

    def __init__(self, info: activity.Info, report: Report) -> None:
        self.details: Details = dict
        self.report = report
        self.deaths, self.suspect = _deaths(info)
        self._info = info
        self._task = asyncio.current_task()
        self._at_risk = False

    def send(self) -> None:
        """Sends a heartbeat: if it is the last one, the next attempt counts as it says."""
        activity.heartbeat({**self.details(), "deaths": self.deaths + self._at_risk})

    def set_at_risk(self, now: bool = True) -> None:
        """From now on the end of the process counts, or not. `runtime.watchdog` shows the names of tasks at work."""
        self._at_risk = now
        if self._task:
            self._task.set_name(f"{self._info.activity_type} of run {self._info.workflow_id}" if now else "waits")

    async def announce(self) -> None:
        """Returns once the server knows how this attempt stands, if one before it died."""
        if self.suspect:
            self.send()
            await asyncio.sleep(limits.HEARTBEAT_SENT.total_seconds())


_attempt: ContextVar[_AttemptBeats] = ContextVar("attempt")


def set_details(details: Details) -> None:
    """Lets the heartbeats of this attempt carry `details()` from now on."""
    if attempt := _attempt.get(None):
        attempt.details = details


@contextlib.asynccontextmanager
async def waiting() -> AsyncIterator[None]:
    """A block that only waits for something outside: the end of the process in it is no death of the call."""
    attempt = _attempt.get(None)
    if attempt is None:
        yield
        return
    attempt.set_at_risk(False)
    await attempt.announce()
    try:
        yield
    finally:
        attempt.set_at_risk()
        if attempt.suspect:
            attempt.send()  # not awaited: what has come may have to be stored first


async def until_stored(write: Callable[[], Awaitable[T]]) -> T:
    """Retries `write` until the attempt ends, because its data was paid for or records an effect.

    Heartbeats say why it waits.
    """
    attempt, pause = _attempt.get(None), limits.STORE_RETRY_INITIAL
    details: Details = attempt.details if attempt else dict
    while True:
        try:
            return await write()
        except SupervisionError as error:
            if error.kind is not ErrorKind.ARTIFACT_UNAVAILABLE:
                raise
            held = {**details(), "held": str(error)}
            set_details(held.copy)
            activity.logger.warning("a result can't be stored yet: %s", error)
            async with waiting():
                if attempt and pause > limits.STORE_RETRY_INITIAL:  # the second try has failed
                    attempt.send()  # the root looks there for what is held, so the server has to know it first
                    await asyncio.sleep(limits.HEARTBEAT_SENT.total_seconds())
                    await attempt.report(str(error))
                await asyncio.sleep(pause.total_seconds())
            pause = min(2 * pause, limits.STORE_RETRY_MAX)


async def _unheard(_: str) -> None:
    """Reports to nobody."""


@contextlib.asynccontextmanager
async def beating(report: Report = _unheard) -> AsyncIterator[None]:
    """Heartbeats until the block ends. The idle watchdog, not the heartbeat, detects a stalled call.

    Raises SupervisionError if the call ended its process too often, and `Cancelled` if the activity's workflow is gone:
    that keeps stack traces of deliberate cancellations out of the log.
    """
    attempt = _AttemptBeats(activity.info(), report)
    if attempt.deaths >= limits.CALL_DEATHS:
        raise SupervisionError(ErrorKind.UNEXPECTED, DEADLY)

    async def keep_beating() -> None:
        while True:
            await asyncio.sleep(limits.HEARTBEAT_EVERY.total_seconds())
            attempt.send()

    token = _attempt.set(attempt)
    attempt.set_at_risk()
    task = asyncio.create_task(keep_beating())
    try:
        await attempt.announce()
        yield
    except (Exception, asyncio.CancelledError) as error:
        activity.heartbeat({**attempt.details(), "ended": activity.info().attempt})  # this one came to its end
        reason = activity.cancellation_details()
        if isinstance(error, asyncio.CancelledError) and reason and reason.not_found:
            raise SupervisionError(ErrorKind.CANCELLED, "stopped: its workflow is gone") from None
        raise
    finally:
        task.cancel()
        attempt.set_at_risk(False)
        _attempt.reset(token)


def _deaths(info: activity.Info) -> tuple[int, bool]:
    """Returns the number of attempts that ended with their process.

    And True if the last one left no report.
    """
    given = info.heartbeat_details[0] if info.heartbeat_details else None
    left = given if isinstance(given, dict) else {}
    if info.attempt == 1 or left.get("ended") == info.attempt - 1:
        return 0, False
    deaths = left.get("deaths", 1)
    return (deaths if isinstance(deaths, int) else 1), True
