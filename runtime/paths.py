"""Where a process keeps what it can make again."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache folder, created on first use.

    `SUPERVISOR_CACHE_DIR`, else `temporal-supervisor` in `XDG_CACHE_HOME`, else in `~/.cache`. Raises OSError
    when it cannot be created.
    """
    named = os.environ.get("SUPERVISOR_CACHE_DIR")
    if named:
        folder = Path(named).expanduser().absolute()
    else:
        home = os.environ.get("XDG_CACHE_HOME")
        # the XDG specification: a relative path is invalid and ignored
        base = Path(home) if home and os.path.isabs(home) else Path.home() / ".cache"
        folder = base / "temporal-supervisor"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
