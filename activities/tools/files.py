"""Files that tools read: which ones they are, and what a tool has made of them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from supervision.base import limits

_TEAM_DATA_FILES = 1000  # a wider pattern is a mistake

Fingerprint = tuple[tuple[str, int, int], ...]


class Closable(Protocol):
    """Something that holds what has to be given back."""

    def close(self) -> None:
        """Gives it back."""


T = TypeVar("T", bound=Closable)


class Files(Protocol):
    """The files that some tools read, wherever they come from."""

    async def paths(self) -> list[Path]:
        """Returns them as local paths, by name. Raises ValueError if they cannot be used."""


@dataclass(frozen=True)
class FolderFiles:
    """The files that a pattern matches in a team's folder."""

    folder: Path
    pattern: str

    async def paths(self) -> list[Path]:
        """Returns them by name. Raises ValueError as `files_inside` does."""
        return await asyncio.to_thread(files_inside, self.folder, self.pattern)


class FileData(Generic[T]):
    """What `make` returns for some files. It is made again when one of them has changed."""

    def __init__(self, files: Files, make: Callable[[list[Path]], T]) -> None:
        self._files = files
        self._make = make
        self._lock = asyncio.Lock()
        self._fingerprint: Fingerprint = ()
        self._made: T | None = None

    async def get(self) -> T:
        """Returns it for the files as they are now. Raises ValueError if they cannot be used."""
        async with self._lock:  # else two calls would read the same files at the same time
            paths = await self._files.paths()
            current = fingerprint(paths)
            if self._made is None or current != self._fingerprint:
                made = await asyncio.to_thread(self._make, paths)
                self.close()
                self._made, self._fingerprint = made, current
            return self._made

    def close(self) -> None:
        """Closes what was made. It is made again when it is asked for."""
        if self._made is not None:
            self._made.close()
        self._made = None


def files_inside(folder: Path, pattern: str) -> list[Path]:
    """Returns the files that `pattern` matches in `folder`, by name.

    A link may lead elsewhere only within the folder. Raises ValueError for a pattern or a file that leaves it,
    for files that are too large or too many, and if nothing matches.
    """
    if not pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts or "\0" in pattern:
        raise ValueError(f"'{pattern}' must be a pattern inside the team's folder, such as data/*.csv")
    root = folder.resolve()
    files = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
    if not files:
        raise ValueError(f"'{pattern}' matches no file in {folder}")
    if len(files) > _TEAM_DATA_FILES:
        raise ValueError(f"'{pattern}' matches {len(files)} files, at most {_TEAM_DATA_FILES} are read")
    for path in files:
        if not path.resolve().is_relative_to(root):
            raise ValueError(f"{path} leads out of the team's folder")
        if path.stat().st_size > limits.TEAM_DATA_BYTES:
            raise ValueError(f"{path} is larger than {limits.TEAM_DATA_BYTES} bytes")
    return files


def fingerprint(files: list[Path]) -> Fingerprint:
    """Returns a value that changes if a file appears, disappears or is written."""
    return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)
