"""The timers of a dispatch: one that is over does not end the next wait, whatever the clock says."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow

from workflows.subtasks import dispatch

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of the timers, each over at once, under a clock that stands still."""
    lengths: list[float] = []

    async def sleep(seconds: float, summary: str) -> None:
        lengths.append(seconds)

    monkeypatch.setattr(workflow, "now", lambda: NOW)
    monkeypatch.setattr(workflow, "sleep", sleep)
    return lengths


async def test_a_timer_that_is_over_before_its_time_is_set_again(sleeps: list[float]) -> None:
    timers, when = dispatch.Timers(), NOW + timedelta(seconds=30)
    first = timers.at("breaker probe", when)
    assert timers.at("breaker probe", when) is first
    await first
    second = timers.at("breaker probe", when)
    assert not second.done()
    await second
    assert sleeps == [30, 30]


async def test_a_time_that_has_come_is_no_wait_without_an_end(sleeps: list[float]) -> None:
    timers = dispatch.Timers()
    for _ in range(2):
        await asyncio.wait([timers.at("breaker probe", NOW)])
    assert sleeps == [1, 1]
