"""A child process that answers JSON lines: without the Worker's environment, and killed when it is late."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

from supervision import limits

Json = dict[str, Any]

_ROOT = Path(__file__).parents[2]
_BOOT = (
    "import importlib, json, sys; sys.path.append(sys.argv[1]); "
    "importlib.import_module(sys.argv[2]).main(json.loads(sys.argv[3]))"
)
_CHUNK = 1 << 16


class LineProcess:
    """A process that runs `main(setup)` of a module: one JSON line in, one JSON object as a line out.

    It inherits no environment, so that no key of the Worker reaches it, and has a session of its own, because
    Ctrl-C in a terminal is for the Worker. The methods block: call them in a thread, one at a time.
    """

    def __init__(self, module: str, setup: Json) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _BOOT, str(_ROOT), module, json.dumps(setup)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"TMPDIR": tempfile.gettempdir()},
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        for pipe in (self._stdin, self._stdout):
            os.set_blocking(pipe, False)
        self._finalizer = weakref.finalize(self, _end, self._process)  # with a pool that nobody uses any longer

    def ask(self, line: bytes, seconds: float) -> Json | None:
        """Returns the answer to a line; None, with the process ended, where none came in time or it was too long."""
        deadline = time.monotonic() + seconds
        try:
            self._write(line + b"\n", deadline)
        except OSError:  # it died before, or does not read
            self.end()
            return None
        return self.read(max(0.0, deadline - time.monotonic()))

    def read(self, seconds: float) -> Json | None:
        """Returns the next line that the process writes; None as `ask` does."""
        deadline = time.monotonic() + seconds
        line = bytearray()
        try:
            while not line.endswith(b"\n"):
                _wait(self._stdout, select.POLLIN, deadline)
                chunk = os.read(self._stdout, _CHUNK)
                if not chunk or len(line) > limits.CHILD_REPLY_BYTES:
                    raise OSError("the process ended, perhaps while writing, or writes without end")
                line += chunk
            answer: Json = json.loads(line)
        except (OSError, ValueError, RecursionError):
            self.end()
            return None
        return answer

    def end(self) -> None:
        """Kills the process."""
        self._finalizer()

    def _write(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            _wait(self._stdin, select.POLLOUT, deadline)
            view = view[os.write(self._stdin, view[:_CHUNK]) :]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def _wait(pipe: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(pipe, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError
