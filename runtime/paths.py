"""Where a process keeps what it can make again, and who may look at what it writes."""

import os
import sys
from pathlib import Path
from shlex import quote

from supervision.base.trust import distrust


def keep_files_private() -> None:
    """Makes whatever this process and its children create from now on the owner's alone; called first in each main."""
    os.umask(0o077)


def make_command(target: str) -> str:
    """Returns the command that makes a target of the Makefile, in backticks, as it runs from the working directory."""
    home = Path(__file__).resolve().parents[1]
    here = os.path.realpath(".") == str(home)
    return f"`make {target}`" if here else f"`make -C {quote(str(home))} {target}`"


def module_command(*words: str) -> str:
    """Returns the command that runs a module with the Python of this process, as it runs from the working directory."""
    return " ".join(quote(word) for word in [from_here(Path(sys.executable)), "-m", *words])


def from_here(path: Path) -> str:
    """Returns the path as one types it in the working directory."""
    absolute = Path(os.path.abspath(path))  # not resolved: the Python of a virtual environment is a link
    try:
        return f"{absolute.relative_to(Path.cwd())}"
    except (ValueError, FileNotFoundError):
        return str(absolute)


def cache_dir() -> Path:
    """Returns the cache folder, created on first use for its owner alone.

    `SUPERVISOR_CACHE_DIR`, else `temporal-supervisor` in `XDG_CACHE_HOME`, else in `~/.cache`. Raises OSError
    when it cannot be created, and when others can change it: it holds content, and a program that is run.
    """
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
