"""What only this process may see: its environment and memory hold the provider's key."""

import contextlib
import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def keep_private() -> None:
    """Closes this process's environment and memory to its children and to others of its user; no core dumps.

    A child with an empty environment could still read `/proc/<parent>/environ`. Linux has that switch; elsewhere only
    the core dumps are switched off.
    """
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without it
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
