"""Files of a team or a run, each converted once for its content, and their index.

`FileCache.reports` takes the entries of files and returns a report on each: its tables and its text
as files of the cache. For each file `_report` looks for a stored report, else fetches the content,
has child processes convert it (`_converted`, `_convert_one`), and moves the result into its place.
`Files` keeps the reports of one team or run until its files change.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Awaitable, Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from cachetools import TTLCache
from pydantic import Field

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.bounded.fair_pool import PLACES
from activities.files.file_reports import (
    Described,
    FileReport,
    cleaned,
    known_table,
    with_descriptions,
    with_unique_tables,
)
from activities.files.report_room import FILE_CHARS, RUN_CHARS, all_fitted, length
from activities.files.values import DATA_TOML, VERSION, WITH_TABLES, unread_name
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.base import Model

_FILE_BYTES = 1 << 30  # of what a file is converted to
# 200 MB of CSV take some 30 s of CPU, on a busy machine four times that.
_CONVERSION_TIME = timedelta(minutes=4)
_AT_ONCE = 2  # files of one run
# A large file may take minutes: then there is a place left for small ones.
_LARGE_BYTES = 1 << 20
_LARGE, _SMALL = PLACES.line(2), PLACES.line(2)
_FAILED_INDEXES, _FAILED_SECONDS = 64, 600  # so many sets of documents are remembered for so long
_PART_SECONDS = 3600  # a half written index of that age is nobody's
_ZIP_TIME = timedelta(minutes=10)  # of all files in one zipped folder
# What a converting process may reserve beside its libraries; it uses two thirds of that.
_MEMORY_BYTES = 288 << 20
_CACHE_BYTES = 8 << 30  # the oldest go first
_INDEXES = "indexes"
_SEARCH_TIME = timedelta(seconds=20)  # of a document of 20 MB, on a busy machine
_MODULE = "activities.files.conversion"
GONE = "it is no longer stored"


class FileEntry(Model):
    """A file by its name or relative path, and the places of its parts; none with a `problem`."""

    name: str
    bytes: Annotated[int, Field(ge=0)] = 0
    sha256: str = ""
    parts: list[str] = []
    problem: str | None = None


Fetch = Callable[[FileEntry, Path], Awaitable[None]]
"""Writes the content of a file to a path.

Raises FileNotFoundError with the reason if there is none any longer.
"""


def local_file(name: str, path: Path, problem: str | None = None) -> FileEntry:
    """Returns the entry of a file on this machine. Raises OSError if it can't be read."""
    if problem:
        return FileEntry(name=name, problem=problem)
    return FileEntry(name=name, sha256=_sha256(path), parts=[str(path)])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def copy_file(file: FileEntry, target: Path) -> None:
    """Writes the content of a `local_file` to a path."""
    await asyncio.to_thread(shutil.copyfile, file.parts[0], target)


class FileCache:
    """Converted files in a folder of this machine, by content; any process may delete them."""

    def __init__(self, folder: Path | None = None) -> None:
        """Uses a folder, by default a temporary one that is deleted with this object."""
        whole = folder or Path(tempfile.mkdtemp(prefix="supervisor-files-"))
        if folder is None:
            weakref.finalize(self, shutil.rmtree, whole, ignore_errors=True)
        self._folder = whole / f"files-{VERSION}"
        self._kept = 0  # what this process has added
        self._failed_indexes: TTLCache[str, str] = TTLCache(_FAILED_INDEXES, _FAILED_SECONDS)
        seconds = _CONVERSION_TIME.total_seconds()
        self._large, self._small = (
            ChildProcesses(_MODULE, line, _MEMORY_BYTES, seconds=seconds, file_bytes=_FILE_BYTES)
            for line in (_LARGE, _SMALL)
        )

    async def reports(self, files: list[FileEntry], owner: str, fetch: Fetch) -> list[FileReport]:
        """Returns a report on each file, or each member of a zipped folder; table names are unique.

        A `data.toml` among them sets how tables are read, and describes them. `fetch` is called
        once for each content. `owner` is the run or team whose turn it takes.
        """
        data_toml = next((file for file in files if file.name == DATA_TOML), None)
        described: Described | str = ""
        if data_toml:
            described = await self._description(data_toml, files, owner, fetch)

        room = RUN_CHARS // max(1, len(files))
        places = asyncio.Semaphore(_AT_ONCE)  # else as many parts as there are files are in memory

        async def read_reports(file: FileEntry) -> list[JsonObject]:
            if file is data_toml:
                problem = described if isinstance(described, str) else None
                return [{"name": file.name, "problem": problem}]
            said, reading = None, ""
            if isinstance(described, Described):
                said, reading = described.of_file(file.name)
            async with places:
                found = await self._report(file, owner, fetch, said, reading)
                return await asyncio.to_thread(all_fitted, found, room)

        kept_before = self._kept
        found = await asyncio.gather(*map(read_reports, files))
        if self._kept > kept_before:
            await asyncio.to_thread(self._make_room)
        reports = with_unique_tables([cleaned(report) for report in chain.from_iterable(found)])
        if not isinstance(described, Described):
            return reports
        return await self._with_words(reports, described, owner)

    async def _description(
        self,
        file: FileEntry,
        files: list[FileEntry],
        owner: str,
        fetch: Fetch,
    ) -> Described | str:
        """Returns the content of the `data.toml` among files, or the problem with it."""
        if file.problem:
            return file.problem
        self._folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="description.", dir=self._folder))
        try:
            await fetch(file, made / "fetched")
            asked = (str(made / "fetched"), [each.name for each in files])
            read: JsonObject = await self._small.call(owner, _CONVERSION_TIME, "describe", *asked)
        except FileNotFoundError as gone:
            return str(gone)
        except (BoundExceeded, Failed) as problem:
            return f"it can't be read: {problem}"
        finally:
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)
        if "problem" in read:
            return f"{read['problem']}. The files are read without it"
        return Described(**read)

    async def _with_words(
        self,
        reports: list[FileReport],
        described: Described,
        owner: str,
    ) -> list[FileReport]:
        """Returns the reports with the descriptions of a `data.toml`, under `about`.

        The report on the `data.toml` itself gets the descriptions that match nothing.
        """
        names = [report.name for report in reports if report.name != DATA_TOML]
        tables = [known_table(report, table) for report in reports for table in report.tables]
        asked = (described.says, described.lines, names, tables)
        found: JsonObject
        try:
            found = await self._small.call(owner, _CONVERSION_TIME, "described_tables", *asked)
        except (BoundExceeded, Failed) as problem:
            mistake = f"its words are in no table: {problem}"
            found = {"mistakes": [mistake], "about": [["", {}]] * len(tables)}
        words = described.says.get("words", {})
        return with_descriptions(reports, words, found["mistakes"], found["about"])

    async def index(self, reports: Sequence[FileReport], owner: str) -> Path:
        """Returns the full-text index over the documents of some files, which is built once.

        Raises BoundExceeded and Failed; an index that failed is not tried again soon.
        """
        documents = [(report.name, report.document) for report in reports]
        files = [[name, found["title"], found["file"]] for name, found in documents if found]
        key = hashlib.sha256(json.dumps(files).encode()).hexdigest()
        if key in self._failed_indexes:
            raise BoundExceeded(self._failed_indexes[key])
        index = self._folder / _INDEXES / f"{key}.sqlite"
        if await asyncio.to_thread(_touch, index):
            return index
        index.parent.mkdir(parents=True, exist_ok=True)
        try:
            await self._large.call(owner, _CONVERSION_TIME, "index_documents", files, str(index))
        except (BoundExceeded, Failed) as problem:
            self._failed_indexes[key] = str(problem)
            raise
        finally:
            await asyncio.to_thread(self._make_room)
        return index

    async def search(
        self,
        reports: list[FileReport],
        match: str,
        most: int,
        owner: str,
    ) -> JsonObject:
        """Returns the best passages as `hits`, [name, place, text], and `left_out` documents."""
        index = await self.index(reports, owner)
        return await self._in_document(owner, "search_documents", str(index), match, most)

    async def text(self, file: str, place: str, owner: str) -> JsonObject:
        """Returns the `text` of a document from a place on, or the `known` places."""
        return await self._in_document(owner, "read_text_from", file, place)

    async def first_lines(
        self,
        file: str,
        most: int,
        chars: int,
        *,
        is_pdf: bool,
        owner: str,
    ) -> JsonObject:
        """Returns the first non-empty `lines` of a text, cut to `chars`, and the `count` of all."""
        return await self._in_document(owner, "first_lines", file, most, chars, is_pdf)

    async def _in_document(self, owner: str, function: str, *asked: Any) -> JsonObject:
        """Calls a function that reads documents. Raises BoundExceeded and Failed."""
        found: JsonObject = await self._small.call(owner, _SEARCH_TIME, function, *asked)
        return found

    async def rows(self, file: str, count: int, owner: str) -> list[str]:
        """Returns the first rows of a converted table, each as JSON."""
        rows: list[str] = await self._small.call(owner, _CONVERSION_TIME, "read_rows", file, count)
        return rows

    async def _report(
        self,
        file: FileEntry,
        owner: str,
        fetch: Fetch,
        described: JsonObject | None,
        reading: str,
    ) -> list[JsonObject]:
        """Returns a report on a file, or on each member of a zipped folder.

        `reading` has the settings of the description that change the conversion.
        """
        unread = file.problem or unread_name(file.name)
        if unread:
            return [{"name": file.name, "problem": unread}]
        content = " ".join(filter(None, [file.sha256, file.name, reading]))
        key = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        folder = self._folder / key
        stored = await asyncio.to_thread(_stored_reports, folder)
        if stored is not None:
            return stored

        self._folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=self._folder))
        fetched = made / "fetched"
        try:
            problem = await _fetch_checked(file, fetch, fetched)
            if problem:
                return [{"name": file.name, "problem": problem}]
            reports = await self._converted(file.name, fetched, owner, described)
            kept = await asyncio.to_thread(_move_into_place, reports, made, folder)
        except (BoundExceeded, Failed) as exceeded:
            # Perhaps of a busy machine: it is not kept, the next run may have more luck.
            return [{"name": file.name, "problem": f"it can't be read: {exceeded}"}]
        finally:
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)
        self._kept += 1
        return kept

    async def _converted(
        self,
        name: str,
        fetched: Path,
        owner: str,
        described: JsonObject | None,
    ) -> list[JsonObject]:
        """Converts a file, or each member of a zipped folder. Raises BoundExceeded and Failed."""
        if not name.lower().endswith(".zip"):
            return [await self._convert_one(name, fetched, owner, described, FILE_CHARS)]
        asked = (str(fetched), name, str(fetched.parent), described)
        members = await self._large.call(owner, _CONVERSION_TIME, "unpack", *asked)
        fetched.unlink()

        until = time.monotonic() + _ZIP_TIME.total_seconds()
        room = RUN_CHARS
        reports = list[JsonObject]()
        for at, (inner, path, problem, said) in enumerate(members):
            if not problem and time.monotonic() > until:
                problem = "it can't be read: the files before it took too long"
            if problem:
                reports.append({"name": inner, "problem": problem})
                continue
            share = min(FILE_CHARS, room // (len(members) - at))
            try:
                reports.append(await self._convert_one(inner, path, owner, said, share))
            except (BoundExceeded, Failed) as exceeded:
                reports.append({"name": inner, "problem": f"it can't be read: {exceeded}"})
            room = max(0, room - length(reports[-1]))
        return reports

    async def _convert_one(
        self,
        name: str,
        file: str | Path,
        owner: str,
        described: JsonObject | None,
        room: int,
    ) -> JsonObject:
        """Returns a report on one file, in `room` characters. Raises BoundExceeded and Failed."""
        asked = (str(file), name, os.path.dirname(file), described, room)
        try:
            is_large = os.path.getsize(file) >= _LARGE_BYTES
        except FileNotFoundError:
            is_large = False
        children = self._large if is_large else self._small
        report: JsonObject = await children.call(owner, _CONVERSION_TIME, "convert", *asked)
        if report["document"] and name.lower().endswith(WITH_TABLES):
            report |= await _tables_in(report["document"], children, owner, *asked)
        try:
            Path(file).unlink()
        except FileNotFoundError:
            # Another process deleted it, perhaps before the child read it: its report is not kept.
            raise Failed(name, "FileNotFoundError", "its copy was deleted meanwhile") from None
        return report

    def _make_room(self) -> None:
        """Deletes the least recently used files, also of older versions, until the rest fits."""
        whole = self._folder.parent
        _delete_abandoned_parts(whole)
        folders = [folder for folder in whole.glob("files-*/*") if folder.name != _INDEXES]
        indexes = whole.glob(f"files-*/{_INDEXES}/*.sqlite")
        made_at: list[tuple[float, int, Path]] = []  # times and sizes
        for made in chain(folders, indexes):
            with contextlib.suppress(OSError):  # another process deletes or moves it
                files = made.rglob("*") if made.is_dir() else [made]
                size = sum(file.stat().st_size for file in files if file.is_file())
                made_at.append((made.stat().st_mtime, size, made))

        total = 0
        for _, size, made in sorted(made_at, reverse=True):
            total += size
            if total <= _CACHE_BYTES:
                continue
            if made.is_dir():
                shutil.rmtree(made, ignore_errors=True)
            else:
                made.unlink(missing_ok=True)


class Files:
    """The files that some tools read, when a tool first needs them, and again after a change."""

    def __init__(self) -> None:
        self._looking = asyncio.Lock()
        self._read_as: Hashable = None
        self._reading: asyncio.Task[list[FileReport]] | None = None

    async def reports(self) -> list[FileReport]:
        """Returns the report on each file.

        All callers wait for the same reading, which continues when one of them stops waiting: a
        large file takes longer than a tool call may, so the next call finds it done. Files that
        were deleted since are converted again. Raises ValueError if the files cannot be used, and
        ArtifactError.
        """
        async with self._looking:
            reading = await self._current_reading()
        return await asyncio.shield(reading)

    async def _current_reading(self) -> asyncio.Task[list[FileReport]]:
        """Returns the task that reads the current files; starts one if none can be used."""
        reading = self._reading
        if reading is not None and not reading.done():
            return reading  # one at a time, however often the files change
        state = await asyncio.to_thread(self._state)
        is_known = reading is not None and state == self._read_as
        if reading is not None and is_known and await asyncio.to_thread(_is_usable, reading):
            return reading
        self._reading = asyncio.create_task(self._read_reports())
        self._read_as = state
        return self._reading

    def _state(self) -> Hashable:
        """Returns a value that changes with the files; called in a thread.

        Raises ValueError if the files cannot be used.
        """
        raise NotImplementedError

    async def _read_reports(self) -> list[FileReport]:
        raise NotImplementedError


def _is_usable(reading: asyncio.Task[list[FileReport]]) -> bool:
    if reading.cancelled() or reading.exception() is not None:
        return False
    reports = reading.result()
    if any(report.problem == GONE for report in reports):
        return False  # a folder that machines share may show a new file a little later
    return are_there(reports)


async def _tables_in(
    document: JsonObject,
    children: ChildProcesses,
    owner: str,
    *asked: Any,
) -> JsonObject:
    """Returns the tables in a document, and the document with notes on unreadable tables."""
    try:
        found: JsonObject = await children.call(owner, _CONVERSION_TIME, "convert_tables", *asked)
    except (BoundExceeded, Failed) as problem:
        found = {"tables": [], "notes": [f"its tables can't be read: {problem}"]}
    return {"tables": found["tables"], "document": {**document, "notes": found["notes"]}}


async def _fetch_checked(file: FileEntry, fetch: Fetch, target: Path) -> str | None:
    """Writes the content of a file to a path. Returns the problem with it, if any."""
    try:
        await fetch(file, target)
    except FileNotFoundError as gone:
        return str(gone)
    if await asyncio.to_thread(_sha256, target) != file.sha256:
        # Other runs would read it in place of the file that really has this hash.
        return "its content is not what its list says"
    return None


def _delete_abandoned_parts(whole: Path) -> None:
    """Deletes the parts of indexes that nobody writes any longer."""
    now = datetime.now(UTC).timestamp()
    for part in whole.glob(f"files-*/{_INDEXES}/*.sqlite.*"):
        with contextlib.suppress(OSError):
            if now - part.stat().st_mtime > _PART_SECONDS:
                part.unlink()


def are_there(reports: Sequence[FileReport]) -> bool:
    """True if all converted files are still in their place."""
    return all(os.path.exists(file) for report in reports for file in report.made_files)


def _stored_reports(folder: Path) -> list[JsonObject] | None:
    """Returns the reports in a folder; None unless all files that they name are there."""
    try:
        found: list[JsonObject] = json.loads((folder / "report.json").read_bytes())
        os.utime(folder)  # the cache keeps what was used last
        return found if are_there([FileReport(**report) for report in found]) else None
    except (OSError, ValueError):
        return None


def _touch(made: Path) -> bool:
    """Marks a file as used, so that the cache keeps it. Returns False if there is none."""
    try:
        os.utime(made)
    except FileNotFoundError:
        return False
    return True


def _move_into_place(reports: list[JsonObject], made: Path, folder: Path) -> list[JsonObject]:
    """Moves new files to their place, unless another process was faster.

    Returns the reports with their new paths.
    """
    written = json.dumps(reports, ensure_ascii=False).replace(str(made), str(folder))
    (made / "report.json").write_text(written, encoding="utf-8", errors="replace")
    try:
        made.rename(folder)
    except OSError:  # it is there, whole or with something deleted from it
        if _stored_reports(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    kept: list[JsonObject] = json.loads(written)
    return kept
