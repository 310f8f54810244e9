"""The event loop of a process, and what reaches it once it is closed."""

import asyncio

import pytest

from temporal_supervisor.runtime import process


async def _running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_a_thread_that_is_late_raises_nothing() -> None:
    closed = process.run(_running_loop())

    handed_over = closed.call_soon_threadsafe(pytest.fail, "it was called")

    assert closed.is_closed()
    assert isinstance(handed_over, asyncio.Handle)


def test_while_it_runs_a_thread_is_heard() -> None:
    async def heard() -> bool:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        await asyncio.to_thread(loop.call_soon_threadsafe, event.set)
        return await event.wait()

    assert process.run(heard())


def test_its_errors_are_those_of_the_coroutine() -> None:
    async def failing() -> None:
        raise ValueError("no such run")

    with pytest.raises(ValueError, match="no such run"):
        process.run(failing())
