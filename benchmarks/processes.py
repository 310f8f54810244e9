"""Processes of the bench: started with a clean environment, watched for CPU and memory, ended by their pid."""

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from standin.server.app import TOKEN_VARIABLE

CHECKOUT = Path(__file__).resolve().parent.parent
_REDIRECTING = ("ANTHROPIC_", "OTEL_", "REF_", "SUPERVISOR_", "TEMPORAL_")
_START_WAIT = 60.0  # a process without compiled bytecode takes seconds to import
_STOP_WAIT = 10.0  # nothing is in flight by then
_POLL = 0.05  # until a started process says that it is ready
_OUTPUT_SHOWN = 1024  # characters: the end of a process's output, in the message that it failed
_HTTP_TIMEOUT = 10.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy


class ProcessFailed(RuntimeError):
    """A process ended or stayed silent where it should have served; the message ends with its output."""


class Process:
    """A process for the time of an `async with` block, which begins when its output has the word `ready`.

    It works in `folder`, which gets its output, too. Raises ProcessFailed when it does not get ready.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, ready: str, variables: Mapping[str, str]
    ) -> None:
        self.name = name
        self._command = command
        self._folder = folder
        self._ready = ready
        self._variables = variables
        self._log = folder / f"{name}.log"
        self._process: psutil.Popen | None = None

    async def __aenter__(self) -> "Process":
        with self._log.open("wb") as output:
            self._process = psutil.Popen(
                self._command,
                cwd=self._folder,
                env=environment(self._variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            async with asyncio.timeout(_START_WAIT):
                while self._ready not in (said := self._log.read_text(encoding="utf-8", errors="replace")):
                    if self._process.poll() is not None:
                        raise ProcessFailed(f"{self.name} ended: {said[-_OUTPUT_SHOWN:]}")
                    await asyncio.sleep(_POLL)
        except BaseException as error:
            await self.__aexit__()
            if isinstance(error, TimeoutError):
                raise ProcessFailed(f"{self.name} is not ready: {said[-_OUTPUT_SHOWN:]}") from None
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        """SIGTERM, and SIGKILL when that is not enough."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, _STOP_WAIT)
        except psutil.TimeoutExpired:
            self.kill()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return int(self._process.pid)

    def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


class ModelControl:
    """The bench's model server on a free port: its process, its latency, its call log."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._token = secrets.token_hex()
        command = [sys.executable, "-m", "benchmarks.bench_brain", "--port", str(port)]
        variables = {"PYTHONPATH": str(CHECKOUT), TOKEN_VARIABLE: self._token}
        self.process = Process("model-server", command, folder, "stand-in model", variables)

    def prepare(self, latency: float) -> None:
        """Answers take `latency` seconds from now on; the call log begins again."""
        self._ask("/reset", {})
        self._ask("/config", {"latency_ms": latency * 1000, "delta_chars": 1 << 20})

    def ledger(self) -> list[dict[str, Any]]:
        """Returns the call log: two entries for each call, as received and as ended."""
        entries: list[dict[str, Any]] = self._ask("/ledger")
        return entries

    def answered(self) -> list[str]:
        """Returns the calls that are answered."""
        return [entry["call"] for entry in self.ledger() if entry["event"] == "answered"]

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"authorization": f"Bearer {self._token}"})
        with _OPENER.open(request, timeout=_HTTP_TIMEOUT) as answer:
            return json.load(answer)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns this process's own, without what redirects a process, with `variables`, without proxies for loopback."""
    # Without compiled bytecode each workflow instance compiles its module: twice the cost of its start.
    left = (*_REDIRECTING, "PYTHONDONTWRITEBYTECODE")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(left)}
    return inherited | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"} | dict(variables)


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of a process and its children."""
    return _sum(pid, lambda process: sum(process.cpu_times()[:2]))


def resident_bytes(pid: int) -> float:
    """Returns the resident memory of a process and its children."""
    return _sum(pid, lambda process: process.memory_info().rss)


def _sum(pid: int, value: Callable[[psutil.Process], float]) -> float:
    total, root = 0.0, psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        try:
            total += value(process)
        except psutil.Error:  # a child that has just ended
            continue
    return total
