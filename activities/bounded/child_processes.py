"""Functions on foreign text in child processes: bounded in time, memory and answer, shared fairly between runs."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from datetime import timedelta
from pathlib import Path
from typing import Any

from activities.bounded.fair_pool import QuestionLine
from activities.bounded.served import TOO_DEEP, TOO_LARGE, Json

CHILD_REPLY_BYTES = 4 * 1024 * 1024  # one answer of a child process; a tool's output is a hundredth of it
_CHILD_START_TIMEOUT = timedelta(seconds=30)  # of a child process: 0.3 s on a quiet machine

_ROOT = Path(__file__).parents[2]
# The child runs the code of its Worker, though another checkout may be installed.
_BOOT = (
    "import json, sys; sys.path[:0] = {sys.argv[1]} - {*sys.path}; from activities.bounded import served; "
    "served.main(json.loads(sys.argv[2]))"
)
_CHUNK = 1 << 16
_ORPHAN_SECONDS = 10  # for one question: then a child whose Worker is gone ends itself


class BoundExceeded(Exception):
    """The function needed more time, memory or depth than it may; the message says so."""


class NotStarted(Exception):
    """No process started, which says nothing of the text: another attempt may have one."""


class Failed(Exception):
    """The function raised an exception; `text` is its message."""

    def __init__(self, name: str, error: str, text: str) -> None:
        super().__init__(f"{name} failed: {error}: {text}")
        self.text = text


class ChildProcesses:
    """Processes that serve the functions of a module, as many at a time as its line of a pool has places.

    A process that ended is replaced at the next question. All end when nothing uses this object any more: after the
    last question at the earliest.
    """

    def __init__(
        self, module: str, line: QuestionLine, memory: int, *, seconds: float = _ORPHAN_SECONDS, file_bytes: int = 0
    ) -> None:
        """A process may take so much `memory` beside its libraries, and write files of `file_bytes`.

        One whose Worker is gone ends after so many `seconds` on one question.
        """
        self._module = module
        self._setup = {"module": module, "seconds": seconds, "file_bytes": file_bytes, "memory": memory}
        self._line = line
        self._idle: list[_ChildProcess] = []

    async def call(self, owner: str, time: timedelta, function: str, *arguments: Any) -> Any:
        """Returns what the function returns. Raises BoundExceeded, Failed and NotStarted."""
        try:
            line = json.dumps([function, arguments]).encode() + b"\n"
        except RecursionError:
            raise BoundExceeded(TOO_DEEP) from None
        async with self._line.place(owner):
            child = self._resumed(owner) or await self._start()
            reply = await child.ask(line, time)
            if "exceeded" in reply:
                child.end()  # else the memory that it holds counts for the next question
                raise BoundExceeded(reply["exceeded"])
            child.served = owner
            self._idle.append(child)
            self._line.pool.rested(child.end)
        if "error" in reply:
            raise Failed(function, reply["type"], reply["error"])
        return reply["result"]

    def _resumed(self, owner: str) -> "_ChildProcess | None":
        """Returns an idle process, the one that served this owner if it can; None without one."""
        self._idle = [child for child in self._idle if child.end.alive]
        if not self._idle:
            return None
        child = next((child for child in reversed(self._idle) if child.served == owner), self._idle[-1])
        self._idle.remove(child)
        self._line.pool.resumed(child.end)
        return child

    async def _start(self) -> "_ChildProcess":
        """Returns a process that serves. Raises NotStarted."""
        try:
            child = await asyncio.to_thread(_ChildProcess, self._setup)
            reply = await child.ask(b"", _CHILD_START_TIMEOUT)
        except OSError as error:
            raise NotStarted(f"{self._module}: {error}") from None
        if "exceeded" in reply:
            raise NotStarted(f"{self._module}: {reply['exceeded']}")
        return child


def start_child(
    program: str, *arguments: str, environment: dict[str, str], folder: Path | None = None
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Returns a process that runs a Python program with the project's folder as its first argument, and its socket.

    It has this environment alone, so that no other key of the Worker reaches it, and a session of its own: Ctrl-C in a
    terminal is for the Worker.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", program, str(_ROOT), *arguments],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    return process, ours


class _ChildProcess:
    """A process that answers one question after the other."""

    def __init__(self, setup: Json) -> None:
        self._ended = f"{TOO_LARGE.format(setup['memory'] >> 20)}, or its process ended for another reason"
        environment = {"TMPDIR": tempfile.gettempdir(), "MALLOC_ARENA_MAX": "1"}
        self._process, self._socket = start_child(_BOOT, json.dumps(setup), environment=environment)
        self._socket.setblocking(False)
        self.served = ""  # the owner of its last question
        self.end = weakref.finalize(self, _end, self._process, self._socket)

    async def ask(self, line: bytes, time: timedelta) -> Json:
        """Returns the answer to a line; what was `exceeded`, with the process ended, where there is none."""
        loop = asyncio.get_running_loop()
        reply, problem = bytearray(), self._ended
        try:
            async with asyncio.timeout(time.total_seconds()):
                await loop.sock_sendall(self._socket, line)
                while not reply.endswith(b"\n") and (chunk := await loop.sock_recv(self._socket, _CHUNK)):
                    reply += chunk
                    if len(reply) > CHILD_REPLY_BYTES:
                        problem = f"its answer is longer than {CHILD_REPLY_BYTES >> 20} MiB"
                        break
            answer: Json = json.loads(reply)  # no JSON if it ended before its end
            return answer
        except TimeoutError:
            problem = f"it takes longer than {time.total_seconds():g} s"
        except (OSError, ValueError, RecursionError):
            pass
        except asyncio.CancelledError:  # its answer would be taken for the next one's
            self.end()
            raise
        self.end()
        return {"exceeded": problem}


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    ours.close()
    process.wait()
