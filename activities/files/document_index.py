"""The full-text index over documents, and their texts by place or line, in a child process."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from secrets import token_hex

from activities.files.document_files import HEADING, PLACE_CHARS, text_passages
from temporal_supervisor.supervision.base.json_object import JsonObject

# Of all documents of an index, which takes some three times that on the disk.
_INDEXED_CHARS = 250_000_000
_GROWTH = 10  # what passages repeat (title, place) makes a text at most so many times as long
_SMALL_CHARS = 100_000  # of a text that may grow more
_READ_CHARS = 190_000  # of one document: a little less than a tool's output is kept
_PLACES_SHOWN = 30  # of a document, where the one asked for is none of them
_BEST = """
    SELECT name, place, text FROM passages WHERE passages MATCH ?
    ORDER BY bm25(passages, 0, 0, 2, 2, 1)
"""  # a word in a title or a heading counts twice
# "3", "page 3", "S. 3"; not "chapter 3".
_PAGE = re.compile(r"(?i)^(?:pages?|pp?\.?|seite|s\.?)?\s*(\d{1,4})$")


def index_documents(files: list[list[str]], index: str) -> int:
    """Writes the index over documents, [name, title, file] each. Returns the number of passages.

    A document that would take too much room is left out, and so is each one after the index is
    full.
    """
    part = Path(f"{index}.{token_hex(8)}")  # others may write the same index
    try:
        with contextlib.closing(sqlite3.connect(part)) as database:
            count = _write(database, files)
        part.replace(index)
    finally:
        part.unlink(missing_ok=True)  # as large as the disk lets it be, if writing failed
    return count


def _write(database: sqlite3.Connection, files: list[list[str]]) -> int:
    with database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(
            "CREATE VIRTUAL TABLE passages USING fts5"
            "(name UNINDEXED, place UNINDEXED, title, heading, text, tokenize='porter unicode61')"
        )
        database.execute("CREATE TABLE left_out (name TEXT)")
        room = _INDEXED_CHARS
        for name, title, file in files:
            text = Path(file).read_text(encoding="utf-8")
            passages = text_passages(text)
            taken = sum(len(title) + 2 * len(place) + len(passage) for place, passage in passages)
            if taken > min(room, max(_GROWTH * len(text), _SMALL_CHARS)):
                database.execute("INSERT INTO left_out VALUES (?)", [name])
                continue
            room -= taken
            rows = ((name, place, title, place, passage) for place, passage in text_passages(text))
            database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", rows)
        (count,) = database.execute("SELECT count(*) FROM passages").fetchone()
    return int(count)


def search_documents(index: str, match: str, most: int) -> JsonObject:
    """Returns `hits`, the best passages as [name, place, text], and `left_out` documents.

    There is one hit for each of the best documents.
    """
    best: dict[str, tuple[str, str, str]] = {}
    address = f"{Path(index).as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        for name, place, passage in database.execute(_BEST, [match]):
            best.setdefault(name, (name, place, passage))
            if len(best) == most:
                break
        others = database.execute("SELECT name FROM left_out LIMIT ?", [most])
        left_out = [name for (name,) in others]
    return {"hits": list(best.values()), "left_out": left_out}


def read_text_from(file: str, place: str) -> JsonObject:
    """Returns the `text` of a document from a place on; without such a place the `known` ones.

    An empty place is the beginning. A last line tells the number of missing characters.
    """
    text = Path(file).read_text(encoding="utf-8")
    meant = _PAGE.sub(r"p. \1", place.strip("# ")).casefold()[:PLACE_CHARS]
    start: int | None = 0
    if meant:
        start = next((at for name, at in _places(text) if name.casefold() == meant), None)
    if start is None:
        return {"known": [name for name, _ in islice(_places(text), _PLACES_SHOWN)]}

    whole = len(text) - start
    shown = text[start : start + _READ_CHARS].strip()
    if whole > _READ_CHARS:
        shown += f"\n[cut: {whole - _READ_CHARS} of {whole} characters are left out]"
    return {"text": shown}


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Yields the headings of a text, each with its position."""
    for heading in HEADING.finditer(text):
        yield heading[1].strip()[:PLACE_CHARS], heading.start()


def first_lines(file: str, most: int, chars: int, is_pdf: bool) -> JsonObject:
    """Returns the first non-empty `lines` of a text, cut to `chars`, and the `count` of all.

    The heading of each page of a PDF is not counted.
    """
    lines: list[str] = []
    count = 0
    with Path(file).open(encoding="utf-8", errors="replace") as text:
        for part in text:
            for line in part.splitlines():
                if not line.strip() or (is_pdf and line.startswith("## p. ")):
                    continue
                count += 1
                if count <= most:
                    lines.append(line[:chars])
    return {"lines": lines, "count": count}
