"""Processes of the bench: started with a clean environment, watched for CPU and memory, ended by their pid."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from benchmarks import limits

_REDIRECTING = ("ANTHROPIC_", "OTEL_", "REF_", "SUPERVISOR_", "TEMPORAL_")


class ProcessFailed(RuntimeError):
    """A process ended or stayed silent where it should have served; the message ends with what it said."""


class Process:
    """A process for the time of an `async with` block; `ready` is True for the output of one that serves.

    It works in `folder`, where its output goes, too. Raises ProcessFailed when it does not get ready.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        ready: Callable[[str], bool],
        variables: Mapping[str, str],
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
            async with asyncio.timeout(limits.START_WAIT.total_seconds()):
                while not self._ready(self.said()):
                    if self._process.poll() is not None:
                        raise ProcessFailed(f"{self.name} ended: {self.said()[-limits.OUTPUT_SHOWN_CHARS :]}")
                    await asyncio.sleep(limits.POLL.total_seconds())
        except TimeoutError:
            await self.stop()
            raise ProcessFailed(f"{self.name} is not ready: {self.said()[-limits.OUTPUT_SHOWN_CHARS :]}") from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def said(self) -> str:
        """Returns all of its output so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return int(self._process.pid)

    @property
    def runs(self) -> bool:
        """True until it has ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL when that is not enough."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, limits.STOP_WAIT.total_seconds())
        except psutil.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns ours without those that redirect a process, and with `variables`. Loopback never goes through a proxy."""
    inherited = {
        key: value
        for key, value in os.environ.items()
        # without compiled bytecode each workflow instance compiles its module anew: twice the cost of its start
        if not key.startswith(_REDIRECTING) and key != "PYTHONDONTWRITEBYTECODE"
    }
    return inherited | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"} | dict(variables)


def cpu_seconds(pid: int) -> float:
    """Returns user and system time of a process and its children."""
    return sum(_cpu(process) for process in _tree(pid))


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process and its children."""
    return sum(_resident(process) for process in _tree(pid))


def _tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:  # a child that has just ended
        return 0.0
    return float(times.user + times.system)


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
