"""The cache folder, the rights of new files, and commands as they run from the working directory."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import NoReturn

from supervision.base.trust import distrust

PROGRAM = "temporal-supervisor"
_HOME = Path(__file__).resolve().parents[1]


def keep_files_private() -> None:
    """Makes all files that this process and its children create the owner's alone; called first in each main."""
    os.umask(0o077)


def command(program: str, words: Iterable[str]) -> str:
    """Returns a command of ours in backticks, quoted for a shell."""
    return f"`{' '.join([program_here(program), *map(quote, words)])}`"


def program_here(name: str) -> str:
    """Returns the installed program, by its name alone where the shell finds it; else Python and the main's file."""
    installed = Path(sys.executable).parent / name
    if (found := shutil.which(name)) and installed.exists() and Path(found).samefile(installed):
        return name
    if installed.exists():
        return quote(_from_here(installed))
    return f"{quote(_from_here(Path(sys.executable)))} {quote(_from_here(_HOME / 'starter.py'))}"


def run_worker(words: Iterable[str], environ: Mapping[str, str]) -> NoReturn:
    """Becomes a Worker process, with some more variables in its environment."""
    main = str(_HOME / "worker_main.py")
    os.execve(sys.executable, [sys.executable, main, *words], {**os.environ, **environ})


def _from_here(path: Path) -> str:
    absolute = Path(os.path.abspath(path))  # not resolved: the Python of a virtual environment is a link
    try:
        return f"{absolute.relative_to(Path.cwd())}"
    except (ValueError, FileNotFoundError):
        return str(absolute)


def cache_dir() -> Path:
    """Returns the cache folder, made for its owner alone. Raises OSError if it can't be, or others can change it."""
    named = os.environ.get("SUPERVISOR_CACHE_DIR")
    if named:
        folder = Path(named).expanduser().absolute()
    else:
        home = os.environ.get("XDG_CACHE_HOME")
        # the XDG specification: a relative path is invalid and ignored
        base = Path(home) if home and os.path.isabs(home) else Path.home() / ".cache"
        folder = base / "temporal-supervisor"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if why := distrust(folder.stat(), os.getuid()):
        raise PermissionError(
            f"the cache folder {folder} can't be used: {why}; make it yours alone, "
            "or let SUPERVISOR_CACHE_DIR name another folder"
        )
    return folder
