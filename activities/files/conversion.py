"""Conversion of one file to tables (Parquet) and a document (text), in a child process.

The process may be ended at any time.
"""

import contextlib
import json
import lzma
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

import duckdb

from activities.files import document_files, table_files
from activities.files.descriptions import (
    FileDescription,
    TableDescription,
    as_json,
    describe,
    described_tables,
)
from activities.files.document_index import (
    first_lines,
    index_documents,
    read_text_from,
    search_documents,
)
from activities.files.document_tables import FoundTable, TooMany, document_tables
from activities.files.json_shapes import SHAPED_BYTES, table_rows
from activities.files.report_room import FILE_CHARS, fitted
from activities.files.tables.engine import table_name
from activities.files.texts import Unreadable
from activities.files.values import DOCUMENTS, TABLES, is_data, value_text
from temporal_supervisor.supervision.base.json_object import JsonObject

__all__ = [  # what the process serves
    "convert",
    "convert_tables",
    "describe",
    "described_tables",
    "first_lines",
    "index_documents",
    "read_rows",
    "read_text_from",
    "search_documents",
    "unpack",
]


_MEMBERS = 2000
_UNPACKED_BYTES = 1 << 30
_ROW_CHARS = 4096  # of a row as JSON: more than anyone shows
# How a damaged zip fails, or one of an odd kind, in the archive or in a member.
_DAMAGED = (
    NotImplementedError,
    OSError,
    UnicodeError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)
_CLUTTER = (".", "__MACOSX", "~$")  # files and folders of systems and programs begin so


def convert(
    path: str,
    name: str,
    out: str,
    described: JsonObject | None = None,
    room: int = FILE_CHARS,
) -> JsonObject:
    """Returns a report on a file, at most `room` characters long; its tables and text are in `out`.

    `described` is a person's description of the file. A report has `name`, `tables` [{name, file,
    rows, columns, notes}], `document` {title, pages, chars, file} or null, and `problem`, the
    reason why the file can't be read, or null.
    """
    source, folder = Path(path), Path(out)
    report: JsonObject = {"name": name, "tables": [], "document": None, "problem": None}
    suffix = PurePosixPath(name).suffix.lower()
    said = FileDescription.model_validate(described) if described else None
    named = _link_named(source, name, folder)
    try:
        if not source.stat().st_size:
            raise Unreadable("it is empty")
        if suffix == ".json":
            report.update(_convert_json(named, folder, said))
        elif suffix in TABLES:
            report["tables"] = getattr(table_files, TABLES[suffix])(named, folder, said)
            if not report["tables"]:
                raise Unreadable("it holds no rows")
        elif suffix in DOCUMENTS:
            report["document"] = getattr(document_files, DOCUMENTS[suffix])(named, folder)
        else:
            raise Unreadable(f"files of the kind '{suffix or name}' are not read")
    except Unreadable as problem:
        report["problem"] = str(problem)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # of any library, for a file that may be anything
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        report["problem"] = f"it can't be read: {reason.replace(f'{named.parent}/', '')[:300]}"
    finally:
        named.unlink(missing_ok=True)
    return fitted(report, room)


def _link_named(source: Path, name: str, folder: Path) -> Path:
    """Returns a link to a file, with the ending that readers need and the store's name lacks."""
    given = PurePosixPath(name)
    suffix = given.suffix.lower() if is_data(name) else ""
    named = folder / "named" / f"{table_name(given.stem)}{suffix}"
    named.parent.mkdir(parents=True, exist_ok=True)
    named.symlink_to(source)
    return named


def _convert_json(path: Path, folder: Path, described: FileDescription | None) -> JsonObject:
    """Returns the table of a list of objects; else the text as a document, with its table, if any.

    Raises Unreadable for a broken file.
    """
    with path.open("rb") as file:
        start = file.read(4096).lstrip(b"\xef\xbb\xbf \r\n\t")
    if start.startswith((b"[", b"{")):
        with contextlib.suppress(Unreadable, duckdb.Error):
            found = table_files.json_tables(path, folder, described)
            if _is_list_of_objects(start) or found[0]["rows"] > 1:
                return {"tables": found}

    document = document_files.plain_document(path, folder)
    text = document["file"]
    is_valid = duckdb.execute("SELECT json_valid(content) FROM read_text(?)", [text]).fetchone()
    if is_valid != (True,):
        raise Unreadable("it is no whole JSON: something in it is wrong, or its end is missing")
    if document["chars"] > SHAPED_BYTES:
        return {"document": document}
    rows = table_rows(Path(text))
    if rows is None:
        return {"document": document}
    said = _with_header(described, 1)
    tables = table_files.row_tables([(path.stem, lambda: rows)], path, folder, said)
    return {"document": document, "tables": tables}


def _is_list_of_objects(start: bytes) -> bool:
    """True if a JSON list begins with an object."""
    return start.startswith(b"[") and start[1:].lstrip().startswith(b"{")


def convert_tables(
    path: str,
    name: str,
    out: str,
    described: JsonObject | None = None,
    room: int = FILE_CHARS,
) -> JsonObject:
    """Returns the `tables` in a document that fit the room, and `notes` on unreadable ones.

    The document itself was converted before: whatever happens here, its text stays.
    """
    folder = Path(out)
    said = FileDescription.model_validate(described) if described else None
    named = _link_named(Path(path), name, folder)
    tables: list[JsonObject] = []
    try:
        found, notes = _found_tables(named, folder)
        for number, table in enumerate(found, 1):
            sheet = named.stem if len(found) == 1 else str(number)
            tables += _read_table(table, sheet, named, folder, said)
    except Unreadable as problem:
        notes = [f"its tables can't be read: {problem}"]
    finally:
        named.unlink(missing_ok=True)
    return fitted({"tables": tables, "notes": notes}, room)


def _found_tables(path: Path, folder: Path) -> tuple[list[FoundTable], list[str]]:
    """Returns the tables of a document, and a note if there are too many."""
    found: list[FoundTable] = []
    try:
        for table in document_tables(path, folder):
            found.append(table)
    except TooMany as too_many:  # those before it count
        return found, [str(too_many)]
    return found, []


def _read_table(
    table: FoundTable,
    sheet: str,
    path: Path,
    folder: Path,
    described: FileDescription | None,
) -> list[JsonObject]:
    """Reads a table of a document like a table of a file, in a folder of its own."""
    own = folder / f"table-{sheet}"
    own.mkdir()
    said = _with_header(described, table.header)
    tables = table_files.row_tables([(sheet, lambda: table.rows)], path, own, said)
    for report in tables:
        if table.above:
            report["above"] = [table.above, *report.get("above", [])]
        if table.repeats:
            spanning = "cells over several rows or columns"
            report["notes"].append(f"{spanning} are repeated in each of them")
    return tables


def _with_header(described: FileDescription | None, rows: int) -> TableDescription | None:
    """Returns a description with the header of `rows` rows that a file marks.

    A header that a person describes takes precedence.
    """
    if not rows:
        return described
    said = described or FileDescription()
    marked: dict[str, Any] = {"header": list(range(1, rows + 1))}
    parts = {}
    for name, part in said.parts.items():
        has_own = "header" in part.model_fields_set
        parts[name] = part if has_own else part.model_copy(update=marked)
    of_file = marked if said.header is None else {}
    return said.model_copy(update={**of_file, "parts": parts})


def unpack(path: str, name: str, out: str, described: JsonObject | None = None) -> list[list[Any]]:
    """Unpacks a zipped folder into `out`. Returns name, path and problem of each file.

    The fourth value is the file's own part of the description in `described`, or None.
    """
    files = _unpacked_files(path, name, out)
    if described is None:
        return [[*file, None] for file in files]
    below = len(name) + 1  # what the names of its members begin with
    names = {inner[below:] for inner, _, _ in files}
    said = FileDescription.model_validate(described)
    return [[*file, as_json(said.of_member(file[0][below:], names))] for file in files]


def _unpacked_files(path: str, name: str, out: str) -> list[list[str]]:
    """Unpacks a zipped folder. Returns name, path and problem of each file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if _is_member(info)]
            size = sum(info.file_size for info in members)
            if len(members) > _MEMBERS or size > _UNPACKED_BYTES:
                most = f"{_MEMBERS} files or {_UNPACKED_BYTES >> 30} GiB"
                return [[name, "", f"it unpacks to more than {most}"]]
            unpacked = []
            for at, info in enumerate(members):
                inner = f"{name}/{info.filename}"
                file, problem = _unpack_member(archive, info, Path(out) / str(at))
                unpacked.append([inner, file, problem])
            return unpacked
    except _DAMAGED as error:
        return [[name, "", f"it can't be unpacked: {error}"]]


def _is_member(info: zipfile.ZipInfo) -> bool:
    """True for a file that a person put into the folder."""
    parts = PurePosixPath(info.filename).parts
    return not info.is_dir() and not any(part.startswith(_CLUTTER) for part in parts)


def _unpack_member(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    folder: Path,
) -> tuple[str, str]:
    """Unpacks a file into a folder of its own. Returns its path, or the problem with it."""
    if info.flag_bits & 1:
        return "", "it is encrypted"
    folder.mkdir(parents=True, exist_ok=True)
    unpacked = folder / "unpacked"
    try:
        with archive.open(info) as source, unpacked.open("wb") as target:
            shutil.copyfileobj(source, target)  # never more than the entry says
    except _DAMAGED as error:
        return "", f"it can't be unpacked: {error}"
    return str(unpacked), ""


def read_rows(file: str, count: int) -> list[str]:
    """Returns the first rows of a converted table, each as a JSON object of at most some KiB."""
    with duckdb.connect(config={"threads": "1", "memory_limit": "160MB"}) as database:
        found = database.execute("SELECT * FROM read_parquet(?) LIMIT ?", [file, count])
        names = [name for name, *_ in found.description or ()]
        rows = [zip(names, row, strict=True) for row in found.fetchall()]
    filled = [{name: value_text(value) for name, value in row if value is not None} for row in rows]
    return [json.dumps(row, ensure_ascii=False)[:_ROW_CHARS] for row in filled]
