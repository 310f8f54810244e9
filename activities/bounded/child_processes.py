"""Functions that read foreign text, run in child processes that runs share fairly.

Each call is bounded in time, memory and the length of its answer.
"""

import asyncio
import json
import tempfile
import weakref
from datetime import timedelta
from typing import Any

from activities.bounded.bounded_child import Child
from activities.bounded.fair_pool import CallLine
from activities.bounded.served import TOO_DEEP, TOO_LARGE
from temporal_supervisor.supervision.base.json_object import JsonObject

CHILD_REPLY_BYTES = 4 * 1024 * 1024  # of one answer: a hundred times a tool's output
_CHILD_START_TIMEOUT = timedelta(seconds=30)  # of a child process: 0.3 s on a quiet machine

_CHUNK = 1 << 16
_ORPHAN_SECONDS = 10  # for one question: then a child whose Worker is gone ends itself


class BoundExceeded(Exception):
    """The function exceeded its time, memory or depth, as the message says."""


class NotStarted(Exception):
    """No process could be started. The text is not at fault: another attempt may succeed."""


class Failed(Exception):
    """The function raised an exception; `text` is its message."""

    def __init__(self, name: str, error: str, text: str) -> None:
        super().__init__(f"{name} failed: {error}: {text}")
        self.text = text


class ChildProcesses:
    """Processes that serve the functions of a module, one for each place of its line.

    A process that has ended is replaced at the next call. All of them end with the last reference
    to this object; a call in flight holds one.
    """

    def __init__(
        self,
        module: str,
        line: CallLine,
        memory: int,
        *,
        seconds: float = _ORPHAN_SECONDS,
        file_bytes: int = 0,
    ) -> None:
        """Starts no process yet.

        A process may use `memory` bytes in addition to its libraries, and write files of up to
        `file_bytes`. A process whose Worker is gone ends after `seconds` on one call.
        """
        self._module = module
        self._setup = {
            "module": module,
            "seconds": seconds,
            "file_bytes": file_bytes,
            "memory": memory,
        }
        self._line = line
        self._idle: list[_ChildProcess] = []

    async def call(self, owner: str, time: timedelta, function: str, *arguments: Any) -> Any:
        """Returns the function's result. Raises BoundExceeded, Failed and NotStarted.

        `owner` is the run or team whose turn it takes, `time` the limit for the answer.
        """
        try:
            line = json.dumps([function, arguments]).encode() + b"\n"
        except RecursionError:
            raise BoundExceeded(TOO_DEEP) from None
        async with self._line.place(owner):
            child = self._take_idle(owner) or await self._start()
            reply = await child.request(line, time)
            if "exceeded" in reply:
                child.end()  # else the memory that it holds counts for the next question
                raise BoundExceeded(reply["exceeded"])
            child.served = owner
            self._idle.append(child)
            self._line.pool.note_resting(child.end)
        if "error" in reply:
            raise Failed(function, reply["type"], reply["error"])
        return reply["result"]

    def _take_idle(self, owner: str) -> "_ChildProcess | None":
        """Returns an idle process, preferably one that belongs to this owner, or None."""
        self._idle = [child for child in self._idle if child.end.alive]
        if not self._idle:
            return None
        known = [child for child in self._idle if child.served == owner]
        child = known[-1] if known else self._idle[-1]
        self._idle.remove(child)
        self._line.pool.note_resumed(child.end)
        return child

    async def _start(self) -> "_ChildProcess":
        """Starts a process. Returns it once it is ready, or raises NotStarted."""
        try:
            child = await asyncio.to_thread(_ChildProcess, self._setup)
            reply = await child.request(b"", _CHILD_START_TIMEOUT)
        except OSError as error:
            raise NotStarted(f"{self._module}: {error}") from None
        if "exceeded" in reply:
            raise NotStarted(f"{self._module}: {reply['exceeded']}")
        return child


class _ChildProcess:
    """A process that answers one request after the other."""

    def __init__(self, setup: JsonObject) -> None:
        too_large = TOO_LARGE.format(setup["memory"] >> 20)
        self._ended = f"{too_large}, or its process ended for another reason"
        environment = {"TMPDIR": tempfile.gettempdir(), "MALLOC_ARENA_MAX": "1"}
        child = Child("activities.bounded.served", json.dumps(setup), environment=environment)
        child.socket.setblocking(False)
        self._socket = child.socket
        self.served = ""  # the owner of its last question
        self.end = weakref.finalize(self, _end, child)

    async def request(self, line: bytes, time: timedelta) -> JsonObject:
        """Sends a line. Returns the answer, or `exceeded` with the exceeded bound.

        Without an answer the process is ended.
        """
        loop = asyncio.get_running_loop()
        reply, problem = bytearray(), self._ended
        try:
            async with asyncio.timeout(time.total_seconds()):
                await loop.sock_sendall(self._socket, line)
                while not reply.endswith(b"\n"):
                    chunk = await loop.sock_recv(self._socket, _CHUNK)
                    if not chunk:
                        break
                    reply += chunk
                    if len(reply) > CHILD_REPLY_BYTES:
                        problem = f"its answer is longer than {CHILD_REPLY_BYTES >> 20} MiB"
                        break
            answer: JsonObject = json.loads(reply)  # fails for an answer that was cut off
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


def _end(child: Child) -> None:
    child.kill()
    child.socket.close()
    child.wait()
