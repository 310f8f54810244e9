"""The record of a shared embedded server: other processes find it there, and check that it runs."""

import asyncio
import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, ValidationError
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.paths import cache_dir

HOST = "127.0.0.1"
PORT = 7233
NAMESPACE = "default"
STOP_WAIT = timedelta(seconds=10)  # it drains for 2.5 s after SIGINT; then it is killed
POLL = timedelta(milliseconds=50)  # until a new server serves
_PROBE_TIMEOUT = timedelta(seconds=3)  # a live server on loopback answers in milliseconds


class ServerInfo(BaseModel):
    """A running embedded server; `ui` is None if it is headless, `db` None if it keeps all in memory."""

    pid: int
    address: str
    ui: str | None
    db: str | None
    log: str


def record_path(cache: Path) -> Path:
    """Returns the file that records the shared server of a cache folder."""
    return cache / "server.json"


def write_record(cache: Path, info: ServerInfo) -> None:
    """Records the shared server, in one step."""
    path = record_path(cache)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(info.model_dump_json(indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def read_record(cache: Path) -> ServerInfo | None:
    """Returns the recorded server if its process still lives."""
    try:
        info = ServerInfo.model_validate_json(record_path(cache).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    return info if is_alive(info) else None


async def running(cache: Path | None = None) -> ServerInfo | None:
    """Returns the shared server if it lives and answers, else None."""
    info = read_record(cache or cache_dir())
    return info if info is not None and await answers(info.address) else None


async def stop_running(cache: Path | None = None) -> ServerInfo | None:
    """Ends the shared server, whichever process started it. Returns its record, or None if none ran."""
    folder = cache or cache_dir()
    info = read_record(folder)
    if info is None:
        return None
    os.kill(info.pid, signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_WAIT.total_seconds()):
            while is_alive(info):  # noqa: ASYNC110 - not our child: nothing announces its end
                await asyncio.sleep(POLL.total_seconds())
    except TimeoutError:
        os.kill(info.pid, signal.SIGKILL)
    record_path(folder).unlink(missing_ok=True)
    return info


def is_alive(info: ServerInfo) -> bool:
    """True if the process still is that server: process ids are used again."""
    words = _command(info.pid)
    return "start-dev" in words and info.address.rpartition(":")[2] in words


def _command(pid: int) -> list[str]:
    """Returns the words of a process's command line; none if it has ended or is another user's."""
    proc = Path("/proc")
    if (proc / "self").exists():
        folder = proc / str(pid)
        try:
            if folder.stat().st_uid != os.getuid():
                return []
            return (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            return []
    listed = subprocess.run(
        ["ps", "-U", str(os.getuid()), "-o", "pid=,args="], capture_output=True, text=True, errors="replace"
    )
    rows = (line.split() for line in listed.stdout.splitlines())
    return next((row[1:] for row in rows if row and row[0] == str(pid)), [])


async def answers(address: str, timeout: timedelta = _PROBE_TIMEOUT) -> bool:
    """True if the server at that address serves its namespace within `timeout`."""
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            client = await Client.connect(address, namespace=NAMESPACE)
            await client.count_workflows()  # needs the namespace and the visibility store, both come up last
    except (RPCError, RuntimeError, TimeoutError):
        return False
    return True
