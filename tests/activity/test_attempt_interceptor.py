"""Around an attempt: heartbeats, deaths of its process, and errors that say whether it is tried again."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from activities.attempt_interceptor import activity_attempt
from activities.heartbeat import set_details, waiting
from activities.store.artifacts import ArtifactMissing, ArtifactUnavailable
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.prompt_marks import DEADLY

T = TypeVar("T")


class Died(BaseException):
    """Stands for the end of the process: no heartbeat comes after it."""

    dead = False

    def __init__(self) -> None:
        Died.dead = True


class Call:
    """The attempts at one call, `number` of them so far; `beats` are the details that the server got."""

    def __init__(self, number: int = 0) -> None:
        self.beats: list[Any] = []
        self.number = number

    async def attempt(self, work: Callable[[], Awaitable[T]]) -> T:
        """Makes the next attempt."""
        self.number += 1
        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(
            environment.info, attempt=self.number, heartbeat_details=self.beats[-1:], workflow_id="run/t1/1"
        )
        environment.on_heartbeat = lambda details: None if Died.dead else self.beats.append(details)
        Died.dead = False

        async def around() -> T:
            async with activity_attempt():
                return await work()

        return await environment.run(around)

    async def die(self, work: Callable[[], Awaitable[None]]) -> None:
        with pytest.raises(Died):
            await self.attempt(work)


async def test_heartbeats_come_while_the_first_read_is_slow_and_then_show_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "HEARTBEAT_EVERY", timedelta(milliseconds=1))
    call = Call()
    details = call.beats

    async def slow() -> str:
        while not details:
            await asyncio.sleep(0.001)
        set_details(lambda: {"tokens": 7})
        while {"tokens": 7, "deaths": 1} not in details:
            await asyncio.sleep(0.001)
        return "read"

    assert await call.attempt(slow) == "read"
    assert details[0] == {"deaths": 1}
    count = len(details)
    await asyncio.sleep(0.01)
    assert len(details) == count


@pytest.mark.parametrize(
    ("error", "attempt", "kind", "final"),
    [
        (ArtifactMissing("gone"), 1000, "ArtifactMissing", False),
        (ArtifactUnavailable("away"), 1000, "ArtifactUnavailable", False),
        (SupervisionError(ErrorKind.NOT_GRANTED, "no"), 1, "NotGranted", True),
        (RPCError("no answer", RPCStatusCode.UNAVAILABLE, b""), 100, "ServerUnavailable", False),
    ],
)
async def test_what_is_gone_for_good_ends_by_name_and_what_may_come_back_does_not(
    error: Exception, attempt: int, kind: str, final: bool
) -> None:
    with pytest.raises(ApplicationError) as caught:
        await Call(attempt - 1).attempt(AsyncMock(side_effect=error))
    assert (caught.value.type, caught.value.non_retryable) == (kind, final)
    assert caught.value.__cause__ is None


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEARTBEAT_SENT", timedelta(0))


@pytest.fixture
def call() -> Call:
    return Call()


async def dies() -> None:
    raise Died


async def dies_while_it_waits() -> None:
    async with waiting():
        raise Died


async def dies_after_it_waited() -> None:
    async with waiting():
        pass
    raise Died


async def works() -> None:
    set_details(lambda: {"tokens": 7})


async def refused(call: Call) -> bool:
    try:
        await call.attempt(works)
    except ApplicationError as error:
        return (error.message, error.type) == (DEADLY, ErrorKind.PROCESS_DIED)
    return False


@pytest.mark.parametrize("death", [dies, dies_after_it_waited])
async def test_a_call_is_refused_once_its_process_died_three_times(
    call: Call, death: Callable[[], Awaitable[None]]
) -> None:
    for _ in range(limits.CALL_DEATHS):
        await call.die(death)
    assert await refused(call)


async def test_deaths_while_a_call_waits_do_not_count(call: Call) -> None:
    for _ in range(limits.CALL_DEATHS * 5):
        await call.die(dies_while_it_waits)
    await call.die(dies)
    assert not await refused(call)


async def test_an_attempt_that_is_stopped_is_no_death(call: Call) -> None:
    async def stopped() -> None:
        raise asyncio.CancelledError

    for _ in range(limits.CALL_DEATHS + 1):
        with pytest.raises(asyncio.CancelledError):
            await call.attempt(stopped)
    assert not await refused(call)


@given(details=st.one_of(st.none(), st.integers(), st.dictionaries(st.sampled_from(["deaths", "ended"]), st.text())))
async def test_details_that_nobody_understands_are_one_death(details: Any) -> None:
    call = Call(1)
    call.beats.append(details)
    assert not await refused(call)
