"""While a program imports its modules, which takes a second: Ctrl-C ends it at once, and no garbage is looked for."""

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
# As Python was started: several of these modules are imported by other programs, too, whose Ctrl-C is theirs.
_PROGRAMS = (
    *("/starter.py", "/worker_main.py", "/console/demo.py", "/runtime/server/__main__.py"),
    *("/temporal-supervisor", "/temporal-supervisor-worker"),
)


def begin_imports() -> None:
    """Makes Ctrl-C end one of our programs at once, without a traceback, until `end_imports`; called first in each."""
    if f"/{sys.argv[0]}".endswith(_PROGRAMS):
        gc.disable()  # what imports make stays: a quarter of their time went into finding that out
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)


def end_imports() -> None:
    """Makes Ctrl-C raise KeyboardInterrupt again, and collects garbage among later objects only."""
    from supervision.base import limits  # not above: that would be an import before all others

    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(limits.NEW_OBJECTS)
        gc.enable()
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(INTERRUPTED)
