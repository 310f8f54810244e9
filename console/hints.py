"""Commands that messages suggest, written so that they run as printed, from where this process was started."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from shlex import quote

from runtime.paths import from_here

_HOME = Path(__file__).resolve().parents[1]
_PROGRAM, _WORKER = "temporal-supervisor", "temporal-supervisor-worker"
_MAINS = {_PROGRAM: "starter.py", _WORKER: "worker_main.py"}
_connection: list[str] = []
EXAMPLE_GOAL = "Which source of electricity grew most in Iowa from 2001 to 2017?"


def keep_connection(address: str | None, namespace: str | None, env_file: Path | None) -> None:
    """From now on hints repeat these options: without them a command would look elsewhere."""
    given = {"--address": address, "--namespace": namespace, "--env-file": env_file and str(env_file)}
    _connection[:] = [word for name, value in given.items() if value for word in (name, value)]


def hint(*words: str) -> str:
    """Returns a command of this program in backticks, quoted for a shell."""
    return _command(_PROGRAM, [*_connection, *words])


def worker_hint(*words: str) -> str:
    """Returns the command that starts a Worker, in backticks."""
    return _command(_WORKER, words)


def _command(program: str, words: Iterable[str]) -> str:
    return f"`{' '.join([_program(program), *map(quote, words)])}`"


def _program(name: str) -> str:
    """Returns the installed command, by its name alone where the shell finds it; else Python and the main's file."""
    installed = Path(sys.executable).parent / name
    if (found := shutil.which(name)) and installed.exists() and Path(found).samefile(installed):
        return name
    if installed.exists():
        return quote(from_here(installed))
    return f"{quote(from_here(Path(sys.executable)))} {quote(from_here(_HOME / _MAINS[name]))}"
