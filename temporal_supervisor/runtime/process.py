"""Functions of a process: cache folder, file rights, commands, event loop, safe exit."""

import asyncio
import atexit
import contextlib
import ctypes
import gc
import os
import resource
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import Context
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.trust import distrust

PROGRAM = "temporal-supervisor"
_HOME = Path(__file__).resolve().parents[2]
_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")


def keep_files_private() -> None:
    """Makes new files of this process and its children private; called first in each main."""
    os.umask(0o077)


def shell_command(program: str, words: Iterable[str], **environ: str) -> str:
    """Returns one of our commands in backticks, quoted for a shell.

    Variables that it needs come before it.
    """
    variables = [f"{name}={quote(value)}" for name, value in environ.items() if value]
    command = [*variables, *_program_words(program), *map(quote, words)]
    return f"`{' '.join(command)}`"


def _program_words(program: str) -> list[str]:
    """Returns the shortest words by which a shell finds this installation of a program."""
    installed = Path(sys.executable).parent / program
    if not installed.exists():
        return [_from_here(Path(sys.executable)), _from_here(_HOME / "starter.py")]
    on_path = shutil.which(program)
    if on_path and Path(on_path).samefile(installed):
        return [program]
    return [_from_here(installed)]


def run_worker(words: Iterable[str], environ: Mapping[str, str]) -> NoReturn:
    """Becomes a Worker process, with some more variables in its environment."""
    main = str(_HOME / "worker_main.py")
    os.execve(sys.executable, [sys.executable, main, *words], {**os.environ, **environ})


def _from_here(path: Path) -> str:
    """Returns a path relative to the working directory, if it is below."""
    # not resolved: the Python of a virtual environment is a link
    absolute = Path(os.path.abspath(path))
    try:
        return quote(f"{absolute.relative_to(Path.cwd())}")
    except (ValueError, FileNotFoundError):
        return quote(str(absolute))


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine like `asyncio.run` and returns its result."""
    with asyncio.Runner(loop_factory=_OutlivedLoop) as runner:
        return runner.run(main)


class _OutlivedLoop(asyncio.SelectorEventLoop):
    """An event loop that the SDK's own threads may outlive.

    Once it is closed, it silently drops further callbacks. A call to the server that was given up,
    for instance at a timeout, ends in an SDK thread, which may deliver its end just when the loop
    closes. Nobody waits for it by then, and a traceback on standard error would look like a fault.
    """

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Arguments], object],
        *args: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Calls a function soon, from any thread; does nothing once the loop is closed."""
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        except RuntimeError:
            if not self.is_closed():
                raise
            return asyncio.Handle(callback, args, self, context)


def cache_dir() -> Path:
    """Returns the cache folder, which is created with access for its owner only.

    Raises OSError if it can't be created, or others can change it.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("SUPERVISOR_CACHE_DIR") or base / PROGRAM).expanduser().absolute()
    another = "let SUPERVISOR_CACHE_DIR name another folder"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        unmade = f"the cache folder {folder} can't be made: {error.strerror}"
        raise OSError(f"{unmade}; {another}") from None
    why = distrust(folder.stat(), os.getuid())
    if why:
        unusable = f"the cache folder {folder} can't be used: {why}"
        raise PermissionError(f"{unusable}; make it yours alone, or {another}")
    return folder


INTERRUPTED = 130
_PR_SET_DUMPABLE = 4


def keep_private() -> None:
    """Hides environment and memory from other processes of the user, where Linux can.

    There are no core dumps either.
    """
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without it
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def search_later_objects_only() -> None:
    """Restricts garbage collection to objects that are created from now on.

    Objects of imported modules stay.
    """
    gc.freeze()
    gc.set_threshold(limits.NEW_OBJECTS)


def write_stderr(line: str) -> None:
    """Writes a line to standard error, for the operator."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def exit_now(code: int = 0) -> NoReturn:
    """Ends the process with an exit code, after its exit handlers and with flushed output.

    The interpreter's own tear-down is skipped: in it, an SDK thread that still releases a finished
    call aborts the process with exit code 134. That was seen in a third of the processes that end
    right after a call.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader of a pipe has gone
            stream.flush()
    os._exit(code)
