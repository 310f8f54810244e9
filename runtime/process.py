"""The process: who owns our packages and what others may see of it when it begins, a safe exit when it ends."""

import atexit
import contextlib
import ctypes
import os
import re
import resource
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

DISTRIBUTION = "temporal-supervisor"
PACKAGES = ("workflows", "activities")
_PR_SET_DUMPABLE = 4
_ADVICE = f"install {DISTRIBUTION} in a virtual environment of its own"


def check_ownership() -> None:
    """Raises SystemExit with one sentence if another distribution owns `workflows` or `activities`, too.

    The names are common, and installers overwrite such packages without a warning.
    """
    problem = shared_with(packages_distributions()) or imported_from_elsewhere(Path(__file__).resolve().parents[1])
    if problem:
        raise SystemExit(problem)


def shared_with(owners: Mapping[str, Iterable[str]]) -> str | None:
    """Returns a sentence naming another owner of our packages, or None."""
    for package in PACKAGES:
        for owner in owners.get(package, ()):
            if re.sub(r"[-_.]+", "-", owner).lower() != DISTRIBUTION:
                return f"the package '{package}' of {DISTRIBUTION} is also installed by '{owner}': {_ADVICE}"
    return None


def imported_from_elsewhere(home: Path) -> str | None:
    """Returns a sentence naming a package that would not be imported from `home`, or None."""
    for package in PACKAGES:
        spec = find_spec(package)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != home:
            return f"the package '{package}' would come from {origin or 'nowhere'}, not from {home}: {_ADVICE}"
    return None


def keep_private() -> None:
    """Closes environment and memory to children and other processes of the user, where Linux can; no core dumps."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without it
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


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
