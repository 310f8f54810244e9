"""Ctrl-C before a program is ready for it: while it imports its modules, which takes a second and more."""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
# As Python was started: several of these modules are imported by other programs, too, whose Ctrl-C is theirs.
_PROGRAMS = (
    *("/starter.py", "/worker_main.py", "/console/demo/__main__.py", "/runtime/server/__main__.py"),
    *("/temporal-supervisor", "/temporal-supervisor-worker"),
)


def end_at_interrupt() -> None:
    """From now on Ctrl-C ends this process at once and without a traceback, if it is one of our programs.

    Called before all other imports. `raise_at_interrupt` ends it, where there is somebody to catch KeyboardInterrupt.
    """
    if f"/{sys.argv[0]}".endswith(_PROGRAMS) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_at_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)
