"""The watchdog, in processes of its own, and the file by which a Worker shows that it lives."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.watchdog import FROZEN

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, re, sys, time
from datetime import timedelta
from supervision.base import limits
limits.LOOP_SILENCE = timedelta(milliseconds=1500)
from runtime import watchdog as dog
from runtime.watchdog import Watchdog, stop_by_signal
dog.NATIVE_CPU = timedelta(milliseconds=1500)
dog.WATCHDOG_TICK = timedelta(milliseconds=100)

def freeze_in_python():
    while True:
        time.sleep(0.01)

def freeze_in_native_code():
    re.match("(a+)+$", "a" * 60 + "!")

async def main(watchdog):
    stop = asyncio.Event()
    watchdog.watch(asyncio.get_running_loop())
    stop_by_signal(asyncio.get_running_loop(), stop)
    print("ready", flush=True)
{body}

with Watchdog() as watchdog:
    asyncio.run(main(watchdog))
print("left", flush=True)
"""


class Program:
    """A process that says when it is ready."""

    def __init__(self, body: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 4))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def end(self) -> tuple[int, str, str]:
        """Its exit code and what it wrote."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


Start = Callable[[str], Program]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs, and ends those that still run after the test."""
    programs: list[Program] = []

    def starting(body: str) -> Program:
        programs.append(Program(body))
        return programs[-1]

    yield starting
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
            program.process.communicate()


@pytest.mark.parametrize(
    ("freeze", "ends_with", "why"),
    [
        ("freeze_in_python", FROZEN, "watchdog: the event loop has been silent for 1.5 s"),
        ("freeze_in_native_code", -signal.SIGPROF, ""),
    ],
)
def test_a_frozen_process_ends_with_all_stacks(start: Start, freeze: str, ends_with: int, why: str) -> None:
    code, _, err = start(f"{freeze}()").end()
    assert code == ends_with
    assert why in err
    assert f"in {freeze}" in err
    assert err.count("hread 0x") >= 2


def test_a_busy_loop_that_answers_goes_on(start: Start) -> None:
    body = """
    began = time.process_time()
    while time.process_time() - began < 2.5:
        for _ in range(1000): pass
        await asyncio.sleep(0)
    """
    assert start(body).end()[:2] == (0, "left\n")


def test_a_process_that_was_paused_as_a_whole_goes_on(start: Start) -> None:
    program = start("await stop.wait()")
    program.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, program.process.pid, os.WSTOPPED | os.WNOWAIT)
    with pytest.raises(subprocess.TimeoutExpired):  # longer than it may be silent
        program.process.wait(2.5)
    program.process.send_signal(signal.SIGCONT)
    with pytest.raises(subprocess.TimeoutExpired):
        program.process.wait(2.5)
    program.process.terminate()
    assert program.end()[:2] == (0, "left\n")


def test_a_second_sigterm_ends_a_frozen_process_at_once(start: Start) -> None:
    program = start("limits.LOOP_SILENCE = timedelta(hours=1); freeze_in_python()")
    program.process.terminate()
    assert program.process.stderr is not None
    assert program.process.stderr.readline().startswith("stopping: ")
    program.process.terminate()
    assert program.end()[0] == -signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_the_environment_and_memory_of_the_process_are_closed() -> None:
    script = """
import ctypes, os, resource, subprocess, sys
from runtime.process import keep_private
keep_private()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE))
read = f"print(b'canary' in open('/proc/{os.getpid()}/environ', 'rb').read())"
print(subprocess.run([sys.executable, "-c", read], env={}, capture_output=True, text=True).stdout or "refused")
"""
    environ = {**os.environ, "SECRET": "canary"}
    done = subprocess.run([sys.executable, "-c", script], env=environ, cwd=ROOT, capture_output=True, text=True)
    dumpable, child = done.stdout.splitlines()[:2]
    assert dumpable == "0 (0, 0)"
    assert child == "refused" or os.geteuid() == 0  # root may read everything
