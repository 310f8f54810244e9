"""A lock between processes of one machine; a process that dies gives its locks back."""

import fcntl
from pathlib import Path
from types import TracebackType
from typing import IO


class FileLock:
    """An exclusive lock on a file, created when missing; releases at the end of a `with` block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def taken(self) -> bool:
        """Try to take the lock; False when another process holds it."""
        file = self._path.open("w")
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
