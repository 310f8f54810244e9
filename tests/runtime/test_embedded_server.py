"""The embedded server and the command behind `make serve`, for real: the tests start the `temporal` program."""

import asyncio
import os
import re
import signal
import sqlite3
import sys
import urllib.request
from asyncio.subprocess import PIPE, Process
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from temporal_supervisor.runtime.server import embedded_server
from temporal_supervisor.runtime.server.embedded_server import (
    EmbeddedServer,
    ServerFailed,
    ServerInfo,
    read_record,
    stop_running,
)
from tests.console.conftest import Cli
from tests.waiting import lives, until

pytestmark = pytest.mark.usefixtures("cache")


def private(db: Path | None = None, headless: bool = True, port: int | None = None) -> EmbeddedServer:
    return EmbeddedServer(shared=False, db=db, headless=headless, port=port)


def failing(place: Path, temporal: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Makes a program that says its version and then does something else than serve."""
    place.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec "{temporal}" "$1"\n{body}\n')
    place.chmod(0o755)
    monkeypatch.setenv("SUPERVISOR_TEMPORAL", str(place))


async def test_it_listens_on_loopback_only_shows_the_web_ui_and_gets_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-secret")
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "elsewhere")
    async with private(headless=False) as info:
        environment = psutil.Process(info.pid).environ()
        places = psutil.Process(info.pid).net_connections("tcp")
        listening = [place.laddr.ip for place in places if place.status == psutil.CONN_LISTEN]
        assert len(listening) >= 2
        assert set(listening) == {"127.0.0.1"}
        assert info.ui is not None
        page = await asyncio.to_thread(urllib.request.urlopen, info.ui, timeout=10)
        with page:
            assert page.status == 200
    assert not [name for name in environment if name.startswith(("ANTHROPIC_", "TEMPORAL_"))]
    assert "PATH" in environment


async def test_a_run_outlives_a_killed_server_with_a_database_in_wal_mode(tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    server = private(db=db)
    async with server as info:
        client = await Client.connect(info.address)
        await client.start_workflow("Anything", id="durable", task_queue="nobody")
        os.kill(info.pid, signal.SIGKILL)
        assert await server.ended() == -signal.SIGKILL

    with closing(sqlite3.connect(db)) as reader:
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    async with private(db=db) as again:
        client = await Client.connect(again.address)
        description = await client.get_workflow_handle("durable").describe()
        assert description.status == WorkflowExecutionStatus.RUNNING


async def test_starters_at_the_same_moment_share_one_server() -> None:
    servers = [EmbeddedServer(headless=True) for _ in range(4)]
    async with AsyncExitStack() as stack:
        infos = await asyncio.gather(*map(stack.enter_async_context, servers))
        assert len({info.pid for info in infos}) == 1
        assert sorted(server.joined for server in servers) == [False, True, True, True]


async def test_a_server_without_a_record_is_named_and_keeps_its_log(cache: Path) -> None:
    async with EmbeddedServer(headless=True) as info:
        (cache / "server.json").unlink()
        written = Path(info.log).stat().st_size
        async with asyncio.timeout(10):
            with pytest.raises(ServerFailed, match="no record names"):
                await AsyncExitStack().enter_async_context(EmbeddedServer(headless=True))
        assert Path(info.log).stat().st_size >= written


async def test_a_server_that_starts_while_another_is_stopped_keeps_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_server, "POLL", timedelta(seconds=2))
    async with EmbeddedServer(headless=True) as old:
        stopping = asyncio.create_task(stop_running())
        await until(lambda: read_record() is None)
        async with EmbeddedServer(headless=True) as new:
            assert await stopping == old
            assert read_record() == new


async def test_a_server_that_has_just_ended_is_stopped_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    server = EmbeddedServer(headless=True)
    async with server as info:
        os.kill(info.pid, signal.SIGKILL)
        await server.ended()
        with monkeypatch.context() as before:
            before.setattr(embedded_server, "read_record", lambda: info)
            assert await stop_running() == info


async def test_a_port_taken_in_between_is_tried_again_with_another(
    tmp_path: Path, temporal_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = tmp_path / "tried"
    again = f'[ -e "{tried}" ] && exec "{temporal_program}" "$@"'
    taken = f'touch "{tried}"; echo "bind: address already in use"; exit 1'
    failing(tmp_path / "temporal", temporal_program, monkeypatch, f"{again}\n{taken}")
    async with private():
        assert tried.exists()


async def test_a_server_at_the_wanted_port_is_not_taken_for_its_own() -> None:
    async with private() as other:
        port = int(other.address.rpartition(":")[2])
        with pytest.raises(ServerFailed, match=f"port {port} of 127.0.0.1 is taken"):
            await AsyncExitStack().enter_async_context(private(port=port))


async def test_a_server_that_ends_at_once_is_an_error_with_its_last_words(
    temporal_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(tmp_path / "temporal", temporal_program, monkeypatch, "echo the disk is full; exit 3")
    with pytest.raises(ServerFailed, match="the disk is full"):
        await AsyncExitStack().enter_async_context(EmbeddedServer(headless=True))
    assert read_record() is None


# --- the command -------------------------------------------------------------------------------------


ROOT = Path(__file__).resolve().parents[2]


async def command(*words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "starter.py", "serve", *words, cwd=ROOT, stdout=PIPE, stderr=PIPE
    )


async def finished(*words: str) -> tuple[int, str]:
    done = await Cli(dict(os.environ), ROOT)("serve", *words)
    return done.code, done.out + done.err


async def serving(process: Process) -> tuple[ServerInfo, str]:
    """Returns the record and the output, once the command has said how to stop."""
    assert process.stdout is not None
    output = ""
    while "stop " not in output:
        line = await process.stdout.readline()
        assert line, "the command ended early"
        output += line.decode()
    info = read_record()
    assert info is not None
    return info, output


async def test_it_serves_until_told_to_stop_and_ends_cleanly(cache: Path) -> None:
    process = await command("--headless")
    info, shown = await serving(process)
    assert f"address   {info.address}" in shown
    assert ("export TEMPORAL_ADDRESS" in shown) == (info.address != "127.0.0.1:7233")
    assert f"database  {cache / 'temporal.db'}" in shown

    code, again = await finished()
    assert code == 0
    assert f"already running (process {info.pid})" in again

    process.send_signal(signal.SIGTERM)
    output, errors = await process.communicate()
    assert (process.returncode, output.decode(), errors.decode()) == (0, "Stopped.\n", "")
    assert not psutil.pid_exists(info.pid)
    assert (cache / "temporal.db").exists()


async def test_detached_it_returns_and_stop_ends_the_server() -> None:
    code, output = await finished("--detach", "--headless", "--in-memory")
    assert code == 0
    assert "database  in memory" in output
    match = re.search(r"process (\d+)", output)
    assert match
    server = psutil.Process(int(match[1]))
    assert "start-dev" in server.cmdline()

    assert (await finished("--stop"))[0] == 0
    await until(lambda: not lives(server.pid))  # it had let go of all it had, which comes a moment before
    assert await finished("--stop") == (0, "No Temporal server is running.\n")


async def test_a_server_that_dies_is_reported_with_exit_code_1() -> None:
    process = await command("--headless", "--in-memory")
    info, _ = await serving(process)
    os.kill(info.pid, signal.SIGKILL)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert "error: the Temporal server ended by itself with exit code -9" in errors.decode()
