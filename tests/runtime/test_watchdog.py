"""The watchdog, in processes of its own, and the file by which a Worker shows that it lives."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from temporal_supervisor.runtime.watchdog import FROZEN

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, re, sys, time
from datetime import timedelta
from temporal_supervisor.supervision.base import limits
limits.LOOP_SILENCE = timedelta(milliseconds=1500)
from temporal_supervisor.runtime import watchdog as dog
from temporal_supervisor.runtime.watchdog import Watchdog, stop_by_signal
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


@contextlib.contextmanager
def started(body: str) -> Iterator[subprocess.Popen[str]]:
    """Gives a process that has said that it is ready; it ends with the block."""
    program = PROGRAM.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 4))
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code and what it wrote, once it has ended."""
    written = process.communicate(timeout=60)
    return process.returncode, *written


@pytest.mark.parametrize(
    ("freeze", "ends_with", "why"),
    [
        ("freeze_in_python", FROZEN, "watchdog: the event loop has been silent for 1.5 s"),
        ("freeze_in_native_code", -signal.SIGPROF, ""),
    ],
)
def test_a_frozen_process_ends_with_all_stacks(freeze: str, ends_with: int, why: str) -> None:
    with started(f"{freeze}()") as process:
        code, _, err = end(process)
    assert code == ends_with
    assert why in err
    assert f"in {freeze}" in err
    assert err.count("hread 0x") >= 2


def test_a_busy_loop_that_answers_goes_on() -> None:
    body = """
    began = time.process_time()
    while time.process_time() - began < 2.5:
        for _ in range(1000): pass
        await asyncio.sleep(0)
    """
    with started(body) as process:
        assert end(process)[:2] == (0, "left\n")


def test_a_process_that_was_paused_as_a_whole_goes_on() -> None:
    with started("await stop.wait()") as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        for _ in range(2):  # each time longer than it may be silent: paused, then at work
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2.5)
            process.send_signal(signal.SIGCONT)
        process.terminate()
        assert end(process)[:2] == (0, "left\n")


def test_a_second_sigterm_ends_a_frozen_process_at_once() -> None:
    with started("limits.LOOP_SILENCE = timedelta(hours=1); freeze_in_python()") as process:
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.readline().startswith("stopping: ")
        process.terminate()
        assert end(process)[0] == -signal.SIGTERM


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_the_environment_and_memory_of_the_process_are_closed() -> None:
    script = """
import ctypes, os, resource, subprocess, sys
from temporal_supervisor.runtime.process import keep_private
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
