"""The processes that the demo starts: the stand-in model, and a Worker that is started again when it is killed."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from pathlib import Path

from console.command import FAILED, CommandFailed

ROOT = Path(__file__).resolve().parents[2]
_READY = "worker ready"
_START_WAIT = timedelta(seconds=60)  # the demo's Worker and stand-in model: 2 s on a quiet machine
_STOP_WAIT = timedelta(seconds=5)  # they have nothing in flight when the demo ends
_POLL = timedelta(milliseconds=100)  # until a started process says that it is ready


@contextlib.asynccontextmanager
async def stand_in(cache: Path) -> AsyncIterator[str]:
    """Yields the URL of a stand-in model on a free port. Raises CommandFailed if it does not come up."""
    log = cache / "standin.log"
    words = ["-m", "standin", "--port", "0", "--ledger", str(cache / "standin.jsonl")]
    process = await _spawn(words, os.environ, log, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        first_line = b""
        with contextlib.suppress(TimeoutError):
            first_line = await asyncio.wait_for(process.stdout.readline(), _START_WAIT.total_seconds())
        url = first_line.decode().rpartition(" ")[2].strip()
        if not url.startswith("http"):
            raise CommandFailed(FAILED, f"the stand-in model did not start: {_last_line(log)}")
        yield url
    finally:
        await _end(process)


class KeptWorker:
    """A Worker process for the time of an `async with` block; `report` is called at every end and start."""

    def __init__(self, environ: Mapping[str, str], log: Path, report: Callable[[str], None]) -> None:
        self.report = report
        self.log = log
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id of the present Worker."""
        assert self._process is not None
        return self._process.pid

    async def keep(self) -> None:
        """Starts another Worker whenever one is killed. Raises CommandFailed if one ends by itself."""
        while True:
            assert self._process is not None
            code = await self._process.wait()
            if code >= 0:
                raise CommandFailed(FAILED, f"the worker ended with exit code {code}: {_last_line(self.log)}")
            self.report(f"worker {self.pid} was killed (signal {-code}): starting another one")
            await self._start()
            self.report(f"worker {self.pid} is there (kill -9 {self.pid} for more); finished work is not repeated")

    async def __aenter__(self) -> "KeptWorker":
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            await _end(self._process)

    async def _start(self) -> None:
        self.log.write_bytes(b"")
        self._process = await _spawn(["-m", "worker_main"], self._environ, self.log)
        try:
            async with asyncio.timeout(_START_WAIT.total_seconds()):
                while _READY not in self.log.read_text(encoding="utf-8", errors="replace"):
                    if self._process.returncode is not None:
                        raise CommandFailed(FAILED, f"the worker did not start: {_last_line(self.log)}")
                    await asyncio.sleep(_POLL.total_seconds())
        except TimeoutError as error:
            raise CommandFailed(FAILED, f"the worker was not ready in time: {_last_line(self.log)}") from error


async def _spawn(
    words: list[str], environ: Mapping[str, str], log: Path, stdout: int | None = None
) -> asyncio.subprocess.Process:
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            env={**environ, "PYTHONPATH": os.pathsep.join([str(ROOT), environ.get("PYTHONPATH", "")]).rstrip(":")},
            stdin=subprocess.DEVNULL,
            stdout=output if stdout is None else stdout,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches the demo alone, which ends them in order
        )


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    try:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), _STOP_WAIT.total_seconds())
    except TimeoutError:
        process.kill()
        await process.wait()
    except ProcessLookupError:
        pass


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it said nothing; its log is {log}"
