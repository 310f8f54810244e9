"""The embedded Temporal server: a development server as a child process.

All processes that need one share it.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from filelock import AsyncFileLock
from pydantic import BaseModel, JsonValue, ValidationError
from temporalio.client import Client
from temporalio.service import RPCError

from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.supervision.base import limits

HOST = "127.0.0.1"
PORT = 7233
NAMESPACE = "default"
STOP_WAIT = timedelta(seconds=10)  # it drains for 2.5 s after SIGINT; then it is killed
POLL = timedelta(milliseconds=50)  # until a new server serves
_PROBE_TIMEOUT = timedelta(seconds=3)  # a live server on loopback answers in milliseconds


class ServerInfo(BaseModel):
    """A running embedded server; `ui` is None if headless, `db` None if kept in memory."""

    pid: int
    address: str
    ui: str | None
    db: str | None
    log: str


def _record() -> Path:
    return cache_dir() / "server.json"


def read_record() -> ServerInfo | None:
    """Returns the recorded server if its process is still running."""
    try:
        info = ServerInfo.model_validate_json(_record().read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return info if _lives(Path(info.log)) else None


async def stop_running() -> ServerInfo | None:
    """Ends the shared server, whichever process started it, and returns its record.

    None if none was running.
    """
    async with _lock():
        info = read_record()
        if info is None:
            return None
        _record().unlink(missing_ok=True)  # nobody joins it any more
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(info.pid, signal.SIGINT)
            try:
                async with asyncio.timeout(STOP_WAIT.total_seconds()):
                    while _lives(Path(info.log)):  # noqa: ASYNC110 - not our child: nothing announces its end
                        await asyncio.sleep(POLL.total_seconds())
            except TimeoutError:
                os.kill(info.pid, signal.SIGKILL)
    return info


def _lock() -> AsyncFileLock:
    """Returns the lock under which the shared server is started and stopped."""
    return AsyncFileLock(cache_dir() / "server.lock", poll_interval=_LOCK_POLL.total_seconds())


def _lives(log: Path) -> bool:
    """True if the server with that log runs: it holds the log locked.

    Process ids are no proof, because they are used again.
    """
    with contextlib.suppress(FileNotFoundError), log.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


async def answers(address: str, timeout: timedelta = _PROBE_TIMEOUT) -> bool:
    """True if the server at an address serves its namespace within `timeout`."""
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            client = await Client.connect(address, namespace=NAMESPACE)
            # needs the namespace and the visibility store, which both come up last
            await client.count_workflows()
    except (RPCError, RuntimeError, TimeoutError):
        return False
    return True


UI_OFFSET = 1000  # the server's own convention: the Web UI's port is the server's plus this

# measured 1.5 (WAL) and 1.16 (eager activities) times cheaper than the server's defaults
_PRAGMAS = ("journal_mode=wal", "synchronous=1")
_DYNAMIC_CONFIG: Mapping[str, JsonValue] = {
    "system.enableActivityEagerExecution": True,
    # One large run does not starve small ones; fan-outs are 2 to 4 times faster.
    "matching.enableFairness": True,
    # Each partition of a queue gets an equal part of its rate, however much work lies in it: with
    # four of them the last sixth of a queue's work was handed out at half its rate.
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    # A Worker sends each refused update back: above 2 MiB the server ends the run for it.
    "history.maxInFlightUpdatePayloads": 2**20,
}
_START_WAIT = timedelta(seconds=60)  # 0.3 s on a quiet machine; a cold disk reads 210 MB first
# A port that was free may be taken before the server binds it, also one that it chooses itself.
_PORT_TRIES = 4
_PORT_TAKEN = "address already in use"
_LOCK_POLL = timedelta(milliseconds=200)  # a file lock does not announce that it is free
_LOG = "server.log"
_NOT_INHERITED = ("TEMPORAL_", "ANTHROPIC_")


class ServerFailed(RuntimeError):
    """The server did not start; the message ends with its output."""


@dataclass(kw_only=True)
class EmbeddedServer:
    """Starts or joins a server for the time of an `async with` block.

    A `shared` server is recorded in the cache folder, so that other processes join it; the options
    are then those of the process that started it. Otherwise this object owns the server. `db` is
    the database file; None keeps everything in memory. With `detach` it outlives this object.
    `port` None means 7233 for a shared server if free, else any free port. `dynamic_config` is
    added to our own values. `joined` is True if another process started the server. Starting raises
    TemporalNotFound and ServerFailed.
    """

    shared: bool = True
    detach: bool = False
    db: Path | None = None
    port: int | None = None
    headless: bool = False
    dynamic_config: Mapping[str, JsonValue] | None = None
    joined: bool = field(default=False, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log: Path = field(init=False)

    async def __aenter__(self) -> ServerInfo:
        if not self.shared:
            return await self._launch()
        async with _lock():
            info = read_record()
            if info is not None:
                if not await answers(info.address, _START_WAIT):
                    server = f"the Temporal server of process {info.pid}"
                    raise ServerFailed(f"{server} does not answer: end it first")
                self.joined = True
                return info

            log = cache_dir() / _LOG
            if _lives(log):  # to wait for its end would be to hang
                server = "a Temporal server that no record names"
                raise ServerFailed(f"{server} has {log} open: end it first (lsof {log})")
            return await self._launch()

    async def __aexit__(self, *_: object) -> None:
        if not self.detach:
            await self._end()

    async def ended(self) -> int:
        """Waits until the server that this object started ends by itself.

        Returns its exit code.
        """
        assert self._process is not None, "nothing announces the end of a server that was joined"
        return await asyncio.to_thread(self._process.wait)

    async def _launch(self) -> ServerInfo:
        """Starts the server, on another port if one was taken."""
        program = await asyncio.to_thread(find_temporal)
        output = ""
        for _ in range(_PORT_TRIES):
            info = self._spawn(program)
            try:
                if await self._serves(info):
                    return info
                output = Path(info.log).read_text(encoding="utf-8", errors="replace").strip()
            except BaseException:
                await self._end()
                raise
            await self._end()
            if _PORT_TAKEN not in output:
                break
        raise ServerFailed(f"the Temporal server did not start: {output[-limits.ERROR_BYTES :]}")

    def _spawn(self, program: Path) -> ServerInfo:
        """Starts a server process and, if it is shared, records it."""
        port, ui_port = _choose_ports(self.port, usual=self.shared)
        if self.shared:
            _record().unlink(missing_ok=True)  # of a server that is gone, and had this log locked
            self._log = cache_dir() / _LOG
        else:
            descriptor, name = tempfile.mkstemp(prefix="temporal-server-", suffix=".log")
            os.close(descriptor)
            self._log = Path(name)

        # nothing that would redirect it, and no secrets
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)
        }
        with self._log.open("wb") as output:
            # until the server ends, which inherits the lock with the open file
            fcntl.flock(output, fcntl.LOCK_EX)
            self._process = subprocess.Popen(
                [program, *self._arguments(port, ui_port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cache_dir(),
                env=environ,
                # Ctrl-C reaches us alone: workers drain before their server goes
                start_new_session=True,
            )

        info = ServerInfo(
            pid=self._process.pid,
            address=f"{HOST}:{port}",
            ui=None if self.headless else f"http://{HOST}:{ui_port}",
            db=str(self.db.absolute()) if self.db else None,
            log=str(self._log),
        )
        if self.shared:  # before it serves: if we are killed here, the next process joins it
            new = _record().with_suffix(f".{os.getpid()}")
            new.write_text(info.model_dump_json(indent=1) + "\n", encoding="utf-8")
            new.replace(_record())
        return info

    def _arguments(self, port: int, ui_port: int) -> list[str]:
        words = ["server", "start-dev", "--ip", HOST, "--port", str(port)]
        words += ["--headless"] if self.headless else ["--ui-port", str(ui_port)]
        if self.db is not None:
            words += ["--db-filename", str(self.db.absolute())]
            for pragma in _PRAGMAS:
                words += ["--sqlite-pragma", pragma]
        config = {**_DYNAMIC_CONFIG, **(self.dynamic_config or {})}
        for key, value in config.items():
            words += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
        return words

    async def _serves(self, info: ServerInfo) -> bool:
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_START_WAIT.total_seconds()):
                while self._process.poll() is None:
                    if await answers(info.address):
                        # else another process took the port and answers there
                        return self._process.poll() is None
                    await asyncio.sleep(POLL.total_seconds())
        return False

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # a database in memory is lost anyway: no reason to wait until the server has drained
        process.send_signal(signal.SIGINT if self.db else signal.SIGKILL)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, STOP_WAIT.total_seconds())
        finally:  # too slow, or a second Ctrl-C
            process.kill()
            process.wait()
            if not self.shared:
                self._log.unlink(missing_ok=True)


def _choose_ports(wanted: int | None, usual: bool) -> tuple[int, int]:
    """Returns the ports of server and Web UI: the wanted or usual ones, else free ones."""
    if wanted is None and usual and _free(PORT) and _free(PORT + UI_OFFSET):
        wanted = PORT
    if wanted is not None:
        if not _free(wanted):  # what answers there would be taken for ours
            raise ServerFailed(f"port {wanted} of {HOST} is taken")
        return wanted, wanted + UI_OFFSET
    with socket.create_server((HOST, 0)) as first, socket.create_server((HOST, 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


def _free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_server((HOST, port)):
        return True
    return False
