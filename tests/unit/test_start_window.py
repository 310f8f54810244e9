"""The window of children that are being started: number and bytes are bounded, nobody is passed over."""

import asyncio

import pytest

from workflows.start_window import STARTED_BYTES, STARTS_AT_ONCE, StartLease, StartWindow

SMALL = 100


async def under_way(tasks: list[asyncio.Task[StartLease]]) -> list[bool]:
    """Which of the leases were given, once nothing moves any more."""
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


def lease(window: StartWindow, size: int) -> asyncio.Task[StartLease]:
    return asyncio.create_task(window.lease(size))


async def started(task: asyncio.Task[StartLease]) -> None:
    async def start() -> None: ...

    await task.result().until_started(start())


async def test_a_further_child_waits_until_a_start_is_confirmed() -> None:
    window = StartWindow()
    tasks = [lease(window, SMALL) for _ in range(STARTS_AT_ONCE + 2)]
    assert await under_way(tasks) == [True] * STARTS_AT_ONCE + [False, False]
    await started(tasks[7])
    assert await under_way(tasks) == [True] * (STARTS_AT_ONCE + 1) + [False]


async def test_large_inputs_wait_for_each_other_in_their_order() -> None:
    window = StartWindow()
    tasks = [lease(window, STARTED_BYTES), lease(window, STARTED_BYTES), lease(window, SMALL)]
    assert await under_way(tasks) == [True, False, False]
    await started(tasks[0])
    assert await under_way(tasks) == [True, True, False]


async def test_an_input_above_the_bound_goes_alone() -> None:
    window = StartWindow()
    tasks = [lease(window, 2 * STARTED_BYTES), lease(window, SMALL)]
    assert await under_way(tasks) == [True, False]


async def test_who_is_cancelled_while_waiting_lets_the_next_one_pass() -> None:
    window = StartWindow()
    first, large, small = (lease(window, size) for size in (SMALL, STARTED_BYTES, SMALL))
    assert await under_way([first, large, small]) == [True, False, False]
    large.cancel()
    assert await under_way([first, large, small]) == [True, True, True]
    with pytest.raises(asyncio.CancelledError):
        large.result()


async def test_who_is_cancelled_as_its_turn_comes_gives_it_back() -> None:
    window = StartWindow()
    first, second = lease(window, STARTED_BYTES), lease(window, STARTED_BYTES)
    await under_way([first, second])
    window.give_back(STARTED_BYTES)
    second.cancel()
    third = lease(window, STARTED_BYTES)
    assert await under_way([third]) == [True]


async def test_a_start_that_fails_frees_its_place_once() -> None:
    window = StartWindow()
    held = await window.lease(STARTED_BYTES)

    async def fails() -> None:
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            await held.until_started(fails())
    tasks = [lease(window, STARTED_BYTES), lease(window, STARTED_BYTES)]
    assert await under_way(tasks) == [True, False]
