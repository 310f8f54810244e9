"""The files that tools read, and the values that tools make of them."""

import asyncio
import json
import os
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from activities.files.file_cache import FileCache, Files, copy_file, local_file
from activities.files.file_reports import FileReport, with_unique_tables
from activities.files.values import DATA_TOML
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.trust import distrust
from temporal_supervisor.supervision.reuse.recipes import sha256_of

_TEAM_DATA_FILES = 1000  # a wider pattern is a mistake
_CACHED_PARTS = 2  # of a path in the cache of files: the folder of the content, and the file
_MADE = 4  # for so many sets of files at a time: a team's own, and with those of a few runs

Fingerprint = tuple[tuple[str, int, int], ...]


T = TypeVar("T")


class FolderFiles(Files):
    """The files that a pattern matches in a team's folder; none without a pattern."""

    def __init__(self, folder: Path, pattern: str, cache: FileCache) -> None:
        super().__init__()
        self.cache = cache
        self._folder = folder
        self._pattern = pattern

    def _state(self) -> Fingerprint:
        return fingerprint([path for _, path in self._matching_files()])

    async def _read_reports(self) -> list[FileReport]:
        named = await asyncio.to_thread(self._matching_files)
        files = await asyncio.to_thread(lambda: [local_file(*each) for each in named])
        return await self.cache.reports(files, str(self._folder), copy_file)

    def _matching_files(self) -> list[tuple[str, Path]]:
        """Returns the files with their names, and the `data.toml` next to them."""
        paths = files_inside(self._folder, self._pattern) if self._pattern else []
        if not paths:
            return []
        # Below it names are unique.
        whole = Path(os.path.commonpath([path.parent for path in paths]))
        named = {path.relative_to(whole).as_posix(): path for path in paths}
        described = whole / DATA_TOML
        if described.is_file() and described.resolve().is_relative_to(self._folder.resolve()):
            named[DATA_TOML] = described
        return list(named.items())


class FileData(Generic[T]):
    """The value that `make` returns for files of a team and a run, cached for a few such sets."""

    def __init__(self, files: Files, make: Callable[[list[FileReport]], T]) -> None:
        self._files = files
        self._make = make
        self._made: LRUCache[Hashable, T] = LRUCache(_MADE)

    async def load(self, run: Files | None = None) -> T:
        """Returns the value for the current files. Raises ValueError if they cannot be used."""
        of_run = await run.reports() if run else []
        taken = {report.name for report in of_run}
        reports = []
        for report in await self._files.reports():
            if report.name in taken:
                report = replace(report, name=f"{report.name} (of the team)")
            reports.append(report)
        reports += of_run
        key = tuple(map(_state_of, reports))
        if key not in self._made:
            self._made[key] = self._make(with_unique_tables(reports))
        return self._made[key]

    async def version(self) -> str:
        """Returns a hash of the team's files and of the way in which they are read."""
        states = [_version_of(report) for report in await self._files.reports()]
        return sha256_of(states)


def _version_of(report: FileReport) -> list[Any]:
    """Returns the state of a report, with paths relative to the cache: these name the content."""
    made = ["/".join(Path(file).parts[-_CACHED_PARTS:]) for file in report.made_files]
    return [report.name, made, report.problem, _state_of(report)[-1]]


def _state_of(report: FileReport) -> tuple[Any, ...]:
    """Returns a key for a report's content.

    Converted files are named by their hash, so paths suffice.
    """
    about = []
    for table in report.tables:
        columns = [column.get("about") for column in table["columns"]]
        about.append([table.get("about"), *columns])
    said = json.dumps([about, dict(report.words), list(report.mistakes)])
    return (report.name, *report.made_files, report.problem, said)


def files_inside(folder: Path, pattern: str) -> list[Path]:
    """Returns the files that `pattern` matches in `folder`.

    Raises ValueError if it matches none, or files that are not allowed.
    """
    leads_out = Path(pattern).is_absolute() or ".." in Path(pattern).parts
    if not pattern or leads_out or "\0" in pattern:
        inside = "a pattern inside the team's folder, such as data/*.csv"
        raise ValueError(f"'{pattern}' must be {inside}")
    root = folder.resolve()
    files = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
    if not files:
        raise ValueError(f"'{pattern}' matches no file in {folder}")
    if len(files) > _TEAM_DATA_FILES:
        most = f"at most {_TEAM_DATA_FILES} are read"
        raise ValueError(f"'{pattern}' matches {len(files)} files, {most}")
    for path in files:
        if not path.resolve().is_relative_to(root):
            raise ValueError(f"{path} leads out of the team's folder")
        if path.stat().st_size > limits.TEAM_DATA_BYTES:
            raise ValueError(f"{path} is larger than {limits.TEAM_DATA_BYTES} bytes")
    return files


def open_to_others(file: Path) -> str | None:
    """Returns the reason why a team's code is not run; None if it may run.

    Users other than the operator could have written it.
    """
    # Who may write to a folder may exchange what is in it.
    for path in (file, file.parent, file.parent.parent):
        why = distrust(path.stat(), os.getuid())
        if why:
            return f"{path} is open to others, {why}"
    return None


def fingerprint(files: list[Path]) -> Fingerprint:
    """Returns a value that changes if a file appears, disappears or is written."""
    found = [(path, path.stat()) for path in files]
    return tuple((str(path), now.st_mtime_ns, now.st_size) for path, now in found)
