"""The command behind `make serve`, as a process of its own."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import psutil
import pytest

from runtime.server.embedded_server import ServerInfo, running
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


async def command(*words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runtime.server", *words, cwd=ROOT, stdout=PIPE, stderr=PIPE
    )


async def finished(*words: str) -> tuple[int, str]:
    process = await command(*words)
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode() + errors.decode()


async def serving(process: Process, cache: Path) -> tuple[ServerInfo, str]:
    """Returns the record and the output, once the command has said how to stop."""
    assert process.stdout is not None
    output = ""
    while "stop " not in output:
        line = await process.stdout.readline()
        assert line, "the command ended early"
        output += line.decode()
    info = await running(cache)
    assert info is not None
    return info, output


@pytest.mark.parametrize("number", [signal.SIGTERM])
async def test_it_serves_until_told_to_stop_and_ends_cleanly(cache: Path, number: signal.Signals) -> None:
    process = await command("--headless")
    info, shown = await serving(process, cache)
    assert f"address   {info.address}" in shown
    assert ("export TEMPORAL_ADDRESS" in shown) == (info.address != "127.0.0.1:7233")
    assert f"database  {cache / 'temporal.db'}" in shown

    code, again = await finished()
    assert code == 0
    assert f"already running (process {info.pid})" in again

    process.send_signal(number)
    output, errors = await process.communicate()
    assert (process.returncode, output.decode(), errors.decode()) == (0, "Stopped.\n", "")
    assert not psutil.pid_exists(info.pid)
    assert (cache / "temporal.db").exists()


async def test_detached_it_returns_and_stop_ends_the_server(cache: Path) -> None:
    code, output = await finished("--detach", "--headless", "--in-memory")
    assert code == 0
    assert "database  in memory" in output
    match = re.search(r"process (\d+)", output)
    assert match
    server = psutil.Process(int(match[1]))
    assert "start-dev" in server.cmdline()

    assert (await finished("--stop"))[0] == 0
    await until(lambda: _has_ended(server))  # it had let go of all it had, which comes a moment before
    assert await finished("--stop") == (0, "No Temporal server is running.\n")


def _has_ended(process: psutil.Process) -> bool:
    """True if it is gone; an orphan's entry stays in the table where no init process collects it."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_a_server_that_dies_is_reported_with_exit_code_1(cache: Path) -> None:
    process = await command("--headless", "--in-memory")
    info, _ = await serving(process, cache)
    os.kill(info.pid, signal.SIGKILL)
    output, _ = await process.communicate()
    assert process.returncode == 1
    assert "ended by itself with exit code -9" in output.decode()
