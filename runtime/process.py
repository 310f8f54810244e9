"""The process: what others may see of it when it begins, a safe exit when it ends."""

import atexit
import contextlib
import ctypes
import gc
import os
import resource
import sys
from typing import NoReturn

from supervision.base import limits

INTERRUPTED = 130
_PR_SET_DUMPABLE = 4


def keep_private() -> None:
    """Closes environment and memory to children and other processes of the user, where Linux can; no core dumps."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without it
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def search_later_objects_only() -> None:
    """Has garbage searched among the objects that are made from now on: those of imported modules stay."""
    gc.freeze()
    gc.set_threshold(limits.NEW_OBJECTS)


def say(line: str) -> None:
    """Writes a line to standard error, for the operator."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def exit_now(code: int = 0) -> NoReturn:
    """Ends the process with this exit code, after its exit handlers and with its output flushed.

    The interpreter's own tear-down is skipped: a thread of the SDK that still lets go of a finished call aborts the
    process in it, with exit code 134 (seen in a third of the processes that end right after a call).
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader of a pipe has gone
            stream.flush()
    os._exit(code)
