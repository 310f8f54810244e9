"""The monitor of the event loop: what holds a loop is seen, a machine that is busy is not."""

import asyncio
import re
import time

from tests.corpus.loop_monitor import monitored

HELD = 0.3  # seconds of CPU


def compute(seconds: float = HELD) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def hold_the_interpreter() -> None:
    """One call of native code, in steps until it took long enough: how long depends on the machine."""
    length = 1 << 10
    while True:
        began = time.thread_time()
        re.search(r"a*b", "a" * length)
        if time.thread_time() - began > HELD:
            return
        length = int(length * 1.3)


def be_stopped() -> None:
    """Uses no time of the CPU, like a process that others keep from running."""
    time.sleep(2 * HELD)


async def test_a_callback_that_computes_is_seen() -> None:
    async with monitored() as monitor:
        compute()
    assert monitor.longest >= HELD


async def test_native_code_of_a_thread_that_holds_the_interpreter_is_seen() -> None:
    async with monitored() as monitor:
        await asyncio.to_thread(hold_the_interpreter)
    assert monitor.longest >= HELD


async def test_threads_that_compute_beside_the_loop_are_no_silence() -> None:
    async with monitored() as monitor:
        await asyncio.gather(*(asyncio.to_thread(compute) for _ in range(3)))
    assert monitor.longest < HELD


async def test_a_machine_that_gives_no_time_is_no_silence() -> None:
    async with monitored() as monitor:
        be_stopped()
    assert monitor.longest < HELD
