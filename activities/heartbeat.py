"""The heartbeats of an attempt, sent by a task of their own, and the count of its deaths.

A call is refused once its process has died three times during the call: it would end the next
process, too. The count travels in the details of the heartbeat. If a second attempt finds no sign
of an ordinary end, it knows that the first one died; from then on each attempt reports a risky part
before it begins. While an attempt waits for a provider or the store, no death is counted.
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
    """The heartbeats of one attempt.

    `deaths` counts the deaths of earlier attempts; `suspect` is True if the last one left no
    report. `report` tells the run why the attempt waits for its store.
    """

    def __init__(self, info: activity.Info, report: Report) -> None:
        self.details: Details = dict
        self.report = report
        self.deaths, self.suspect = _deaths(info)
        self._info = info
        self._task = asyncio.current_task()
        self._at_risk = False

    def send(self) -> None:
        """Sends a heartbeat, which counts a death in advance if the attempt is at risk."""
        activity.heartbeat({**self.details(), "deaths": self.deaths + self._at_risk})

    def set_at_risk(self, now: bool = True) -> None:
        """Counts the end of the process as a death of the call from now on, or no longer.

        `runtime.watchdog` shows the names of tasks at work.
        """
        self._at_risk = now
        if self._task:
            at_work = f"{self._info.activity_type} of run {self._info.workflow_id}"
            self._task.set_name(at_work if now else "waits")

    async def announce(self) -> None:
        """Returns once the server knows the state of this attempt, if an earlier one died."""
        if self.suspect:
            self.send()
            await asyncio.sleep(limits.HEARTBEAT_SENT.total_seconds())


_attempt: ContextVar[_AttemptBeats] = ContextVar("attempt")


def set_details(details: Details) -> None:
    """Makes the heartbeats of this attempt carry `details()` from now on."""
    if attempt := _attempt.get(None):
        attempt.details = details


@contextlib.asynccontextmanager
async def waiting() -> AsyncIterator[None]:
    """A block that only waits for something outside: the process may die in it without a count."""
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

    Heartbeats carry the reason for the wait. Raises SupervisionError for other failures than an
    unavailable store.
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
                    # The root looks there for what is held, so the server has to know it first.
                    attempt.send()
                    await asyncio.sleep(limits.HEARTBEAT_SENT.total_seconds())
                    await attempt.report(str(error))
                await asyncio.sleep(pause.total_seconds())
            pause = min(2 * pause, limits.STORE_RETRY_MAX)


async def _unheard(_: str) -> None:
    """Reports to nobody."""


@contextlib.asynccontextmanager
async def beating(report: Report = _unheard) -> AsyncIterator[None]:
    """Heartbeats until the block ends. A stalled call is detected by the idle watchdog, not here.

    Raises SupervisionError if the call ended its process too often, and `Cancelled` if the
    activity's workflow is gone: that keeps stack traces of deliberate cancellations out of the log.
    """
    attempt = _AttemptBeats(activity.info(), report)
    if attempt.deaths >= limits.CALL_DEATHS:
        raise SupervisionError(ErrorKind.PROCESS_DIED, DEADLY)

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
        # This attempt came to its end: its process did not die.
        activity.heartbeat({**attempt.details(), "ended": activity.info().attempt})
        reason = activity.cancellation_details()
        if isinstance(error, asyncio.CancelledError) and reason and reason.not_found:
            raise SupervisionError(ErrorKind.CANCELLED, "stopped: its workflow is gone") from None
        raise
    finally:
        task.cancel()
        attempt.set_at_risk(False)
        _attempt.reset(token)


def _deaths(info: activity.Info) -> tuple[int, bool]:
    """Returns the number of attempts that died, and True if the last one left no report."""
    given = info.heartbeat_details[0] if info.heartbeat_details else None
    left = given if isinstance(given, dict) else {}
    if info.attempt == 1 or left.get("ended") == info.attempt - 1:
        return 0, False
    deaths = left.get("deaths", 1)
    return (deaths if isinstance(deaths, int) else 1), True
