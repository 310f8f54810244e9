"""Limits that a child process sets for itself.

This module imports nothing of the project: each child process pays for its imports.
"""

import contextlib
import resource


def bound(kind: int, soft: int, hard: int | None = None) -> None:
    """Sets a limit of `resource` for this process and for processes that it starts later.

    The limit can be raised again up to `hard`, by default not at all.
    """
    # Some systems lack a limit, or have a lower one.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (soft, soft if hard is None else hard))


def bound_memory(soft: int, hard: int | None = None) -> None:
    """Limits the writable memory, in bytes.

    Address space would be no measure: libraries reserve addresses and map files at no cost.
    """
    bound(resource.RLIMIT_DATA, soft, hard)


def leave_no_core() -> None:
    """Keeps a crash from writing the memory of this process, with secrets in it, to a file."""
    bound(resource.RLIMIT_CORE, 0)


def data_bytes() -> int:
    """Returns the writable memory of this process in bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:  # systems without that file
        return 0
