"""One file made into tables (Parquet) and a document (text), in a child process that may be ended at any time."""

import contextlib
import json
import lzma
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Any

import duckdb

from activities.files import document_files, table_files
from activities.files.tables.engine import table_name
from activities.files.texts import Unreadable
from activities.files.values import DOCUMENTS, TABLES, is_data, shown

Json = dict[str, Any]

_MEMBERS = 2000
_UNPACKED_BYTES = 1 << 30
_ROW_CHARS = 4096  # of a row as JSON: more than anyone shows
# What a damaged zip, or one of an odd kind, is met with; a member's own name may be read first when it is opened.
_DAMAGED = (NotImplementedError, OSError, UnicodeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


def convert(path: str, name: str, out: str) -> Json:
    """Returns a report on a file; its tables and text lie in `out`.

    A report: `name`, `tables` [{name, file, rows, columns, notes}], `document` {title, pages, chars, file} or null,
    `problem` (why it can't be read) or null.
    """
    source, folder = Path(path), Path(out)
    report: Json = {"name": name, "tables": [], "document": None, "problem": None}
    suffix = PurePosixPath(name).suffix.lower()
    named = folder / "named" / f"{table_name(PurePosixPath(name).stem)}{suffix if is_data(name) else ''}"
    try:
        named.parent.mkdir(parents=True, exist_ok=True)
        if not source.stat().st_size:
            raise Unreadable("it is empty")
        named.symlink_to(source)  # readers look at the ending, and the store's name has none
        if suffix == ".json":
            report.update(_json(named, folder))
        elif suffix in TABLES:
            report["tables"] = getattr(table_files, TABLES[suffix])(named, folder)
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
    return report


def _json(path: Path, folder: Path) -> Json:
    """Returns the table of a list of objects, else the text as a document. Raises Unreadable for a broken file."""
    with path.open("rb") as file:
        start = file.read(4096).lstrip(b"\xef\xbb\xbf \r\n\t")
    if start.startswith((b"[", b"{")):
        with contextlib.suppress(Unreadable, duckdb.Error):
            found = table_files.json_tables(path, folder)
            if start.startswith(b"[") or found[0]["rows"] > 1:
                return {"tables": found}
    document = document_files.plain_document(path, folder)
    if duckdb.execute("SELECT json_valid(content) FROM read_text(?)", [document["file"]]).fetchone() != (True,):
        raise Unreadable("it is no whole JSON: something in it is wrong, or its end is missing")
    return {"document": document}


def unpack(path: str, name: str, out: str) -> list[list[str]]:
    """Returns the name and the path of each file of a zipped folder, unpacked into `out`, with a problem or none."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = [info for info in archive.infolist() if not info.is_dir()]
            clutter = (".", "__MACOSX", "~$")
            members = [i for i in files if not any(p.startswith(clutter) for p in PurePosixPath(i.filename).parts)]
            if len(members) > _MEMBERS or sum(info.file_size for info in members) > _UNPACKED_BYTES:
                return [[name, "", f"it unpacks to more than {_MEMBERS} files or {_UNPACKED_BYTES >> 30} GiB"]]
            return [_unpacked(archive, info, name, Path(out) / str(at)) for at, info in enumerate(members)]
    except _DAMAGED as error:
        return [[name, "", f"it can't be unpacked: {error}"]]


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, folder: Path) -> list[str]:
    inner = f"{name}/{info.filename}"
    if info.flag_bits & 1:
        return [inner, "", "it is encrypted"]
    folder.mkdir(parents=True, exist_ok=True)
    unpacked = folder / "unpacked"
    try:
        with archive.open(info) as source, unpacked.open("wb") as target:
            shutil.copyfileobj(source, target)  # never more than the entry says
    except _DAMAGED as error:
        return [inner, "", f"it can't be unpacked: {error}"]
    return [inner, str(unpacked), ""]


def read_rows(file: str, count: int) -> list[str]:
    """Returns the first rows of a table that was converted, each as a JSON object of at most some KiB."""
    with duckdb.connect(config={"threads": "1", "memory_limit": "160MB"}) as database:
        found = database.execute("SELECT * FROM read_parquet(?) LIMIT ?", [file, count])
        names = [name for name, *_ in found.description or ()]
        rows = [zip(names, row, strict=True) for row in found.fetchall()]
    filled = [{name: shown(value) for name, value in row if value is not None} for row in rows]
    return [json.dumps(row, ensure_ascii=False)[:_ROW_CHARS] for row in filled]


def index_documents(files: list[list[str]], index: str) -> int:
    """Writes the full-text index over documents, [name, title, file] each. Returns the number of passages."""
    import sqlite3

    part = Path(f"{index}.{token_hex(8)}")  # others may write the same index
    with sqlite3.connect(part) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(
            "CREATE VIRTUAL TABLE passages USING fts5"
            "(name UNINDEXED, place UNINDEXED, title, heading, text, tokenize='porter unicode61')"
        )
        for name, title, file in files:
            passages = document_files.text_passages(Path(file).read_text(encoding="utf-8"))
            rows = ((name, place, title, place, text) for place, text in passages)
            database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", rows)
        (count,) = database.execute("SELECT count(*) FROM passages").fetchone()
    database.close()
    part.replace(index)
    return int(count)
