"""A child process from its start to its end.

A Worker starts all its child processes here: for files, SQL, the web and MCP servers.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
# The child runs the code of its Worker, though another checkout may be installed.
_BOOT = (
    "import importlib, sys; sys.path[:0] = {sys.argv[1]} - {*sys.path}; "
    "importlib.import_module(sys.argv[2]).main(*sys.argv[3:])"
)


class Child:
    """A process that runs the function `main` of a module.

    `socket` is the Worker's end of the process's standard input and output. The process gets the
    given environment alone, so that no other key of the Worker reaches it. It has a session of its
    own: Ctrl-C in a terminal reaches only the Worker, and one signal ends the process and all that
    it started.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: dict[str, str],
        folder: Path | None = None,
    ) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOT, str(_ROOT), module, *arguments],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kills the process with its session. Its id is not reused until `wait` has returned."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the session has ended
            os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Returns once the process has ended."""
        self._process.wait()
