"""Around an attempt: heartbeats before the first slow read, and errors that say whether it is tried again."""

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.attempts import MISSING_ATTEMPTS, Attempts
from activities.guard import NotGranted
from activities.heartbeat import show
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactTooLarge, ArtifactUnavailable
from activities.teams.stored_teams import TeamUnavailable
from supervision.base import limits
from supervision.base.errors import ErrorKind, SupervisionError


class Slow(ActivityInboundInterceptor):
    """What comes after: a read that ends when heartbeats have come, or an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.beaten = asyncio.Event()
        self.details: list[Any] = []

    def beat(self, *details: Any) -> None:
        self.details.append(details[0])
        self.beaten.set()

    async def execute_activity(self, call: ExecuteActivityInput) -> Any:
        if self.error:
            raise self.error
        await asyncio.wait_for(self.beaten.wait(), 10)
        show(lambda: {"tokens": 7})
        while {"tokens": 7, "deaths": 1} not in self.details:
            await asyncio.sleep(0.001)
        return "read"


async def _attempt(inner: Slow, *, number: int = 1) -> Any:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=number)
    environment.on_heartbeat = inner.beat
    call = ExecuteActivityInput(fn=print, args=[], executor=None, headers={})
    around = Attempts().intercept_activity(inner)
    return await environment.run(around.execute_activity, call)


async def test_heartbeats_come_while_the_first_read_is_slow_and_then_show_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HEARTBEAT_EVERY", timedelta(milliseconds=1))
    slow = Slow()
    assert await _attempt(slow) == "read"
    assert slow.details[0] == {"deaths": 1}
    count = len(slow.details)
    await asyncio.sleep(0.01)
    assert len(slow.details) == count


@pytest.mark.parametrize(
    ("error", "attempt", "kind", "final"),
    [
        (ArtifactMissing("gone"), MISSING_ATTEMPTS - 1, "ArtifactMissing", False),
        (ArtifactMissing("gone"), MISSING_ATTEMPTS, "ArtifactMissing", True),
        (ArtifactUnavailable("away"), 1000, "ArtifactUnavailable", False),
        (TeamUnavailable("lacking"), 1000, "TeamUnavailable", False),
        (NotGranted("no"), 1, "NotGranted", True),
        (ArtifactChanged("changed"), 1, "ArtifactChanged", True),
        (ArtifactTooLarge("large"), 1, "ArtifactTooLarge", True),
        (RPCError("no answer", RPCStatusCode.UNAVAILABLE, b""), 100, "ServerUnavailable", False),
    ],
)
async def test_what_is_gone_for_good_ends_by_name_and_what_may_come_back_does_not(
    error: Exception, attempt: int, kind: str, final: bool
) -> None:
    with pytest.raises(ApplicationError) as caught:
        await _attempt(Slow(error), number=attempt)
    assert (caught.value.type, caught.value.non_retryable) == (kind, final)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("kind", "quiet"), [(ErrorKind.INVALID_REQUEST, True), (ErrorKind.CANCELLED, True), (ErrorKind.UNEXPECTED, False)]
)
async def test_an_end_that_is_no_fault_of_the_worker_raises_no_alarm(kind: ErrorKind, quiet: bool) -> None:
    with pytest.raises(ApplicationError) as caught:
        await _attempt(Slow(SupervisionError(kind, "ended")))
    assert (caught.value.category is ApplicationErrorCategory.BENIGN, caught.value.non_retryable) == (quiet, True)
