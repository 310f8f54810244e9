"""Files of a team or a run, each converted once for its content, and the index over their documents."""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.files.conversion import VERSION

Json = dict[str, Any]

FILE_BYTES = 1 << 30  # of one file, and of what it is converted to
_CONVERSION_TIME = timedelta(seconds=120)  # 200 MB of CSV take some 20 s
_CHILDREN = 2
_ADDRESS_BYTES = 3 << 30  # what a converting process may map; what it uses stays below 300 MB
_CACHE_BYTES = 8 << 30  # the oldest go first
_MODULE = "activities.files.conversion"


@dataclass(frozen=True)
class SourceFile:
    """A file that people know by `name`; `fetch` writes its content to a path, which is needed once per content."""

    name: str
    sha256: str
    bytes: int
    fetch: Callable[[Path], Awaitable[None]]


@dataclass(frozen=True)
class FileReport:
    """What became of a file: its tables {name, file, rows, columns, notes}, its document, or the problem with it."""

    name: str
    tables: Sequence[Json] = ()
    document: Json | None = None
    problem: str | None = None

    @property
    def described(self) -> str:
        """The file's name, with those of its tables and its document where tools call them otherwise."""
        tables = ", ".join(table["name"] for table in self.tables)
        other = document_id(self.name) if self.document and document_id(self.name) != self.name else ""
        parts = [self.name, f"table {tables}" if tables else "", f"document {other}" if other else ""]
        return ", ".join(part for part in parts if part)


def document_id(name: str) -> str:
    """Returns a document's id: its file's name, without the ending of a plain text."""
    return name.removesuffix(".md").removesuffix(".txt")


class FileCache:
    """Converted files in a folder of this machine, by content: any process may delete it at any time."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a folder it has one of its own, for as long as it lives."""
        self._own = None if folder else tempfile.TemporaryDirectory(prefix="supervisor-files-")
        self._folder = (folder or Path(self._own.name if self._own else "")) / f"files-{VERSION}"
        seconds = _CONVERSION_TIME.total_seconds()
        self._children = ChildProcesses(_MODULE, _CHILDREN, _ADDRESS_BYTES, seconds=seconds, file_bytes=FILE_BYTES)

    async def reports(self, sources: Iterable[SourceFile], owner: str) -> list[FileReport]:
        """Returns a report on each file, or on each member of a zipped folder. Table names are unique among them."""
        found = await asyncio.gather(*(self._report(source, owner) for source in sources))
        reports = [FileReport(**report) for several in found for report in several]
        return with_unique_tables(reports)

    async def index(self, reports: Sequence[FileReport], owner: str) -> Path:
        """Returns the full-text index over the documents of some files, made once for the same ones."""
        files = [[report.name, report.document["file"]] for report in reports if report.document]
        key = hashlib.sha256(json.dumps(files).encode()).hexdigest()
        index = self._folder / "indexes" / f"{key}.sqlite"
        if not await asyncio.to_thread(index.exists):
            index.parent.mkdir(parents=True, exist_ok=True)
            await self._children.call(owner, _CONVERSION_TIME, "index_documents", files, str(index))
        return index

    async def rows(self, file: str, count: int, owner: str) -> list[str]:
        """Returns the first rows of a converted table, each as JSON."""
        rows: list[str] = await self._children.call(owner, _CONVERSION_TIME, "read_rows", file, count)
        return rows

    def close(self) -> None:
        """Ends the converting processes."""
        self._children.close()
        if self._own:
            self._own.cleanup()

    async def _report(self, source: SourceFile, owner: str) -> list[Json]:
        key = hashlib.sha256(f"{source.sha256} {source.name}".encode()).hexdigest()
        folder = self._folder / key
        if (known := await asyncio.to_thread(_read, folder)) is not None:
            return known
        if source.bytes > FILE_BYTES:
            return [{"name": source.name, "problem": f"it is larger than {FILE_BYTES >> 20} MiB"}]
        self._folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=self._folder))
        try:
            await source.fetch(made / "fetched")
            reports = await self._converted(source.name, made, owner)
            return await asyncio.to_thread(_keep, reports, made, folder)
        finally:
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)

    async def _converted(self, name: str, made: Path, owner: str) -> list[Json]:
        try:
            asked = (str(made / "fetched"), name, str(made))
            reports: list[Json] = await self._children.call(owner, _CONVERSION_TIME, "convert", *asked)
        except BoundExceeded as exceeded:
            return [{"name": name, "problem": f"it can't be read, {exceeded}"}]
        except Failed as failed:
            return [{"name": name, "problem": f"it can't be read: {failed.text}"}]
        finally:
            (made / "fetched").unlink(missing_ok=True)
        return reports

    def make_room(self) -> None:
        """Deletes what was converted first until the rest fits the cache."""
        folders = sorted(self._folder.glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
        total = 0
        for folder in folders:
            total += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            if total > _CACHE_BYTES:
                shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path) -> list[Json] | None:
    try:
        found: list[Json] = json.loads((folder / "report.json").read_bytes())
        os.utime(folder)  # the cache keeps what was used last
    except (OSError, ValueError):
        return None
    return found


def _keep(reports: list[Json], made: Path, folder: Path) -> list[Json]:
    """Moves what was made to its place, unless another process was faster. Returns the reports with paths there."""
    written = json.dumps(reports, ensure_ascii=False).replace(str(made), str(folder))
    (made / "report.json").write_text(written, encoding="utf-8")
    with contextlib.suppress(OSError):
        made.rename(folder)
    return _read(folder) or reports


def with_unique_tables(reports: list[FileReport]) -> list[FileReport]:
    """Returns the reports, tables of the same name numbered from the second on."""
    names: dict[str, int] = {}
    unique = []
    for report in reports:
        tables = []
        for table in report.tables:
            count = names[table["name"]] = names.get(table["name"], 0) + 1
            name = table["name"] if count == 1 else f"{table['name']}_{count}"
            tables.append({**table, "name": name, "source": report.name})
        unique.append(FileReport(report.name, tables, report.document, report.problem))
    return unique
