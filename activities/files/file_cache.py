"""Files of a team or a run, each converted once for its content, and the index over their documents."""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.files.descriptions import (
    DATA_TOML,
    DataDescription,
    FileDescription,
    KnownTable,
    Written,
    mistakes,
)
from activities.files.values import VERSION, WITH_TABLES, literal, numbered, unread_kind
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import clean, one_line
from temporal_supervisor.supervision.contract.base import Model

Json = dict[str, Any]

_FILE_BYTES = 1 << 30  # of what a file is converted to
_CONVERSION_TIME = timedelta(minutes=4)  # 200 MB of CSV take some 30 s of CPU, on a busy machine four times that
_CHILDREN = 2
_ZIP_TIME = timedelta(minutes=10)  # of all files in one zipped folder
_MEMORY_BYTES = 288 << 20  # what a converting process may reserve beside its libraries; it uses two thirds of that
_CACHE_BYTES = 8 << 30  # the oldest go first
_NAME_BYTES = 300
_MODULE = "activities.files.conversion"
GONE = "it is no longer stored"


class FileEntry(Model):
    """A file by its name or its path below a folder, and where its parts lie, in order; none with a `problem`."""

    name: str
    bytes: int = 0
    sha256: str = ""
    parts: list[str] = []
    problem: str | None = None


Fetch = Callable[[FileEntry, Path], Awaitable[None]]
"""Writes the content of a file to a path. Raises FileNotFoundError with the reason if there is none any longer."""


def local_file(name: str, path: Path, problem: str | None = None) -> FileEntry:
    """Returns a file of this machine, known to have a problem or none. Raises OSError if it can't be read."""
    if problem:
        return FileEntry(name=name, problem=problem)
    with path.open("rb") as file:
        return FileEntry(name=name, sha256=hashlib.file_digest(file, "sha256").hexdigest(), parts=[str(path)])


async def copy_file(file: FileEntry, target: Path) -> None:
    """Writes the content of a `local_file` to a path."""
    await asyncio.to_thread(shutil.copyfile, file.parts[0], target)


@dataclass(frozen=True)
class FileReport:
    """What became of a file: its tables {name, file, rows, columns, notes}, its document, or the problem with it.

    Of a `data.toml` these are the `words` of the house that it explains, and its `mistakes`: what fits no table.
    """

    name: str
    tables: Sequence[Json] = ()
    document: Json | None = None
    problem: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    mistakes: Sequence[str] = ()

    @property
    def made(self) -> list[str]:
        """The files that were made of it."""
        return [one["file"] for one in [*self.tables, self.document] if one]

    @property
    def described(self) -> str:
        """The file's name, which is its document's id, with the names of its tables."""
        tables = ", ".join(table["name"] for table in self.tables)
        return f"{self.name}, table {tables}" if tables else self.name


def contents(column: Json, most: int | None = None) -> str:
    """Returns the range of a column, or its first values and how many more it has; empty if nothing is known."""
    if "range" in column:
        return " to ".join(column["range"])
    values = column.get("values", [])
    more = len(values) - len(values[:most]) + column.get("more", 0)
    return ", ".join(map(_listed, values[:most])) + (f", ... and {more} more" if more else "")


def reading_line(reading: Json) -> str:
    """Returns a cell as it is written beside its value, what was decided, and why."""
    written, value = literal(reading["written"]), reading["value"]
    as_value = f"{written} is {value}" if value != reading["written"] else written
    why = "; ".join(filter(None, [reading.get("decision"), reading.get("why")]))
    unit = f", in {reading['unit']}" if reading.get("unit") else ""
    return f"{as_value}{unit} ({why})" if why else f"{as_value}{unit}"


def _listed(value: str) -> str:
    """Returns a value as it is listed; one that contains the separator is written as in SQL."""
    plain = clean(value).replace("\n", " ")
    return literal(plain) if ", " in plain else plain


class FileCache:
    """Converted files in a folder of this machine, by content: any process may delete it at any time."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a folder it has one of its own, for as long as it lives."""
        whole = folder or Path(tempfile.mkdtemp(prefix="supervisor-files-"))
        if folder is None:
            weakref.finalize(self, shutil.rmtree, whole, ignore_errors=True)
        self._folder = whole / f"files-{VERSION}"
        self._kept = 0  # what this process has added
        seconds = _CONVERSION_TIME.total_seconds()
        self._children = ChildProcesses(_MODULE, _CHILDREN, _MEMORY_BYTES, seconds=seconds, file_bytes=_FILE_BYTES)

    async def reports(self, files: Iterable[FileEntry], owner: str, fetch: Fetch) -> list[FileReport]:
        """Returns a report on each file, or on each member of a zipped folder. Table names are unique among them.

        A `data.toml` among them says how tables are read, and what they mean. `fetch` is needed once for each content.
        """
        places = asyncio.Semaphore(_CHILDREN)  # else as many parts as there are files are in memory
        files = list(files)
        names = [file.name for file in files]
        data_toml = next((file for file in files if file.name == DATA_TOML), None)
        written = await self._description(data_toml, owner, fetch) if data_toml else None
        says = written.says if isinstance(written, Written) else DataDescription()

        async def read(file: FileEntry) -> list[Json]:
            if file is data_toml:
                return [{"name": file.name, "problem": written if isinstance(written, str) else None}]
            async with places:
                return await self._report(file, owner, fetch, says.of_file(file.name, names))

        kept = self._kept
        found = await asyncio.gather(*map(read, files))
        if self._kept > kept:
            await asyncio.to_thread(self._make_room)
        reports = [FileReport(**report) for several in found for report in several]
        for at, report in enumerate(reports):  # a name may hold anything
            problem = report.problem and one_line(clean(report.problem), limits.SENTENCE_BYTES)
            reports[at] = replace(report, name=one_line(clean(report.name), _NAME_BYTES), problem=problem)
        unique = with_unique_tables(reports)
        return with_descriptions(unique, written) if isinstance(written, Written) else unique

    async def _description(self, file: FileEntry, owner: str, fetch: Fetch) -> Written | str:
        """Returns what a `data.toml` says, or the problem with it."""
        if file.problem:
            return file.problem
        self._folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix="description.", dir=self._folder))
        try:
            await fetch(file, made / "fetched")
            read: Json = await self._children.call(owner, _CONVERSION_TIME, "describe", str(made / "fetched"))
        except FileNotFoundError as gone:
            return str(gone)
        except (BoundExceeded, Failed) as problem:
            return f"it can't be read: {problem}"
        finally:
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)
        if "problem" in read:
            return f"{read['problem']}. The files are read without it"
        lines = {tuple(place): line for place, line in read["lines"]}
        return Written(DataDescription.model_validate(read["says"]), lines)

    async def index(self, reports: Sequence[FileReport]) -> Path:
        """Returns the full-text index over the documents of some files, made once for the same ones."""
        files = [[report.name, found["title"], found["file"]] for report in reports if (found := report.document)]
        key = hashlib.sha256(json.dumps(files).encode()).hexdigest()
        index = self._folder / "indexes" / f"{key}.sqlite"
        if not await asyncio.to_thread(index.exists):
            index.parent.mkdir(parents=True, exist_ok=True)
            await self._children.call(key, _CONVERSION_TIME, "index_documents", files, str(index))
        return index

    async def rows(self, file: str, count: int, owner: str) -> list[str]:
        """Returns the first rows of a converted table, each as JSON."""
        rows: list[str] = await self._children.call(owner, _CONVERSION_TIME, "read_rows", file, count)
        return rows

    async def _report(self, file: FileEntry, owner: str, fetch: Fetch, described: FileDescription | None) -> list[Json]:
        if file.problem:
            return [{"name": file.name, "problem": file.problem}]
        if PurePosixPath(file.name).name == DATA_TOML:
            words = f"only the {DATA_TOML} of the folder itself counts: name these tables there, by their paths"
            return [{"name": file.name, "problem": words}]
        if why := unread_kind(file.name):
            return [{"name": file.name, "problem": why}]
        reading = described.reading if described else ""  # words alone change nothing that was made
        content = " ".join(filter(None, [file.sha256, file.name, reading]))
        key = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        folder = self._folder / key
        if (known := await asyncio.to_thread(_read, folder)) is not None:
            return known
        self._folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=self._folder))
        fetched = made / "fetched"
        try:
            try:
                await fetch(file, fetched)
            except FileNotFoundError as gone:
                return [{"name": file.name, "problem": str(gone)}]
            if (await asyncio.to_thread(local_file, "", fetched)).sha256 != file.sha256:
                # Kept under that name, it would be what other runs read for the file that really has this content.
                return [{"name": file.name, "problem": "its content is not what its list says"}]
            reports = await self._converted(file.name, fetched, owner, described)
            kept = await asyncio.to_thread(_keep, reports, made, folder)
        except (BoundExceeded, Failed) as problem:  # perhaps of a busy machine: the next run may have more luck
            return [{"name": file.name, "problem": f"it can't be read: {problem}"}]
        finally:
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)
        self._kept += 1
        return kept

    async def _converted(self, name: str, fetched: Path, owner: str, described: FileDescription | None) -> list[Json]:
        """Returns a report on a file or on each member of a zipped folder. Raises BoundExceeded and Failed."""
        if not name.lower().endswith(".zip"):
            return [await self._one(name, fetched, owner, described)]
        asked = (str(fetched), name, str(fetched.parent))
        members = await self._children.call(owner, _CONVERSION_TIME, "unpack", *asked)
        fetched.unlink()
        below = len(name) + 1  # what the names of its members begin with
        inner_names = [inner[below:] for inner, _, _ in members]
        until, reports = time.monotonic() + _ZIP_TIME.total_seconds(), list[Json]()
        for inner, path, problem in members:
            if not problem and time.monotonic() > until:
                problem = "it can't be read: the files before it took too long"
            if problem:
                reports.append({"name": inner, "problem": problem})
                continue
            try:
                said = described.of_member(inner[below:], inner_names) if described else None
                reports.append(await self._one(inner, path, owner, said))
            except (BoundExceeded, Failed) as exceeded:
                reports.append({"name": inner, "problem": f"it can't be read: {exceeded}"})
        return reports

    async def _one(self, name: str, file: str | Path, owner: str, described: FileDescription | None) -> Json:
        said = described.model_dump(mode="json", exclude_unset=True) if described else None
        asked = (str(file), name, os.path.dirname(file), said)
        report: Json = await self._children.call(owner, _CONVERSION_TIME, "convert", *asked)
        if report["document"] and name.lower().endswith(WITH_TABLES):
            report |= await self._tables_of(report["document"], owner, *asked)
        try:
            Path(file).unlink()
        except FileNotFoundError:  # another process may delete it: what the child says then is not kept
            raise Failed(name, "FileNotFoundError", "its copy was deleted meanwhile") from None
        return report

    async def _tables_of(self, document: Json, owner: str, *asked: Any) -> Json:
        """Returns the tables in a document, and it with notes on what of them can't be read: its text stays."""
        try:
            found: Json = await self._children.call(owner, _CONVERSION_TIME, "convert_tables", *asked)
        except (BoundExceeded, Failed) as problem:
            found = {"tables": [], "notes": [f"its tables can't be read: {problem}"]}
        return {"tables": found["tables"], "document": {**document, "notes": found["notes"]}}

    def _make_room(self) -> None:
        """Deletes what was used longest ago, older versions' files too, until the rest fits the cache."""
        sizes: list[tuple[float, int, Path]] = []
        for folder in self._folder.parent.glob("files-*/*"):
            with contextlib.suppress(OSError):  # another process deletes or moves it
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                sizes.append((folder.stat().st_mtime, size, folder))
        total = 0
        for _, size, folder in sorted(sizes, reverse=True):
            total += size
            if total > _CACHE_BYTES:
                shutil.rmtree(folder, ignore_errors=True)


class Files:
    """The files that some tools read. They are read when a tool first needs them, and again after a change."""

    def __init__(self) -> None:
        self._looking = asyncio.Lock()
        self._read_as: Hashable = None
        self._reading: asyncio.Task[list[FileReport]] | None = None

    async def reports(self) -> list[FileReport]:
        """Returns what each file holds. Raises ValueError if they cannot be used, and as the store does.

        All callers wait for the same reading, and it continues when one of them stops waiting: a large file takes
        longer than a tool call may, so the next call finds it done. What was deleted since is made again.
        """
        async with self._looking:
            reading = self._reading
            if reading is None or reading.done():  # one at a time, however often the files change
                current = await asyncio.to_thread(self._state)
                if reading is None or current != self._read_as or not await asyncio.to_thread(_usable, reading):
                    reading = self._reading = asyncio.create_task(self._read())
                    self._read_as = current
        return await asyncio.shield(reading)

    def _state(self) -> Hashable:
        """Returns a value that changes with the files; called in a thread. Raises ValueError if they can't be used."""
        raise NotImplementedError

    async def _read(self) -> list[FileReport]:
        raise NotImplementedError


def _usable(reading: asyncio.Task[list[FileReport]]) -> bool:
    if reading.cancelled() or reading.exception() is not None:
        return False
    # a folder that machines share may show a new file a little later
    return are_there(reading.result()) and not any(report.problem == GONE for report in reading.result())


def are_there(reports: Sequence[FileReport]) -> bool:
    """True if everything that was made of the files is still in its place."""
    return all(os.path.exists(file) for report in reports for file in report.made)


def _read(folder: Path) -> list[Json] | None:
    """Returns the reports that lie in a folder; None unless all is there that they name."""
    try:
        found: list[Json] = json.loads((folder / "report.json").read_bytes())
        os.utime(folder)  # the cache keeps what was used last
        return found if are_there([FileReport(**report) for report in found]) else None
    except (OSError, ValueError):
        return None


def _keep(reports: list[Json], made: Path, folder: Path) -> list[Json]:
    """Moves what was made to its place, unless another process was faster. Returns the reports with paths there."""
    written = json.dumps(reports, ensure_ascii=False).replace(str(made), str(folder))
    (made / "report.json").write_text(written, encoding="utf-8", errors="replace")
    try:
        made.rename(folder)
    except OSError:  # it is there, whole or with something deleted from it
        if _read(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    kept: list[Json] = json.loads(written)
    return kept


def with_unique_tables(reports: list[FileReport]) -> list[FileReport]:
    """Returns the reports, tables of the same name numbered from the second on, each with its file as `source`.

    `own` is the name that a table has among those of its file.
    """
    names = iter(numbered([table["name"] for report in reports for table in report.tables]))
    return [
        replace(report, tables=[_renamed(table, next(names), report.name) for table in report.tables])
        for report in reports
    ]


def _renamed(table: Json, name: str, source: str) -> Json:
    return {"own": table["name"], **table, "name": name, "source": source}


def with_descriptions(reports: list[FileReport], written: Written) -> list[FileReport]:
    """Returns the reports, their tables and columns with the words of a `data.toml`, which says what it fits not."""
    files = [report.name for report in reports if report.name != DATA_TOML]
    tables = [
        KnownTable(report.name, table["own"], [column["name"] for column in table["columns"]])
        for report in reports
        for table in report.tables
    ]
    wrong = [one_line(clean(mistake), limits.SENTENCE_BYTES) for mistake in mistakes(written, files, tables)]
    described = list[FileReport]()
    for report in reports:
        if report.name == DATA_TOML:
            described.append(replace(report, words=written.says.words, mistakes=wrong))
            continue
        said = written.says.of_file(report.name, files)
        described.append(
            replace(report, tables=[_described(table, said) for table in report.tables]) if said else report
        )
    return described


def _described(table: Json, said: FileDescription) -> Json:
    """Returns a table with its description and those of its columns, under `about`."""
    own = said.of(table["own"])
    columns = list[Json]()
    for column in table["columns"]:
        words = own.columns.get(column["name"])
        columns.append({**column, "about": words.description} if words and words.description else column)
    return {**table, "columns": columns, **({"about": own.description} if own.description else {})}
