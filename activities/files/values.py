"""The kinds of readable files, and values and names of tables as text.

It imports little, because many processes need it.
"""

from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from pathlib import PurePosixPath

Cell = str | int | float | None
"""A value of a table as it is read from a file."""

_NOISE = 1e-14  # of a value: less than its 15th digit
_LEAST, _LARGEST = 1e-9, 1e15  # of numbers without an exponent

VERSION = 15
"""Raised whenever files are read in another way: then all are converted again."""

ROW_PLACE = "rowid"
"""The column of a row's place in its file, from 1 on; a table has it for queries that name it."""
ENGINE_ROW_PLACE = "file_row_number"
"""The engine's own, which counts from 0."""
ROW_PLACE_SQL = f"{ENGINE_ROW_PLACE} + 1"
"""A row's place in its file, where the engine counts rows."""
_NO_COLUMN = (ROW_PLACE, ENGINE_ROW_PLACE)  # names that no column of a file keeps

TABLES = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), "csv_tables"),
    ".parquet": "parquet_tables",
    **dict.fromkeys((".jsonl", ".ndjson"), "json_tables"),
    **dict.fromkeys((".xlsx", ".xls", ".xlsb", ".xlsm", ".ods"), "spreadsheet_tables"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite_tables"),
}
"""The reader in `table_files` of each ending."""
DOCUMENTS = {
    ".pdf": "pdf_document",
    ".docx": "docx_document",
    **dict.fromkeys((".html", ".htm"), "html_document"),
    **dict.fromkeys((".md", ".txt", ".text", ".rst", ".log"), "plain_document"),
}
"""The reader in `document_files` of each ending."""
WITH_TABLES = (".html", ".htm", ".docx", ".md", ".txt", ".text")
"""The endings of documents in which tables may stand."""
_READABLE = (*TABLES, *DOCUMENTS, ".json", ".zip")


DATA_TOML = "data.toml"
"""The name of a file that says how the tables beside it are read; only the folder's own counts."""


def is_data(name: str) -> bool:
    """True if a file with that name may contain a table or a document."""
    return name.lower().endswith(_READABLE)


def unread_name(name: str) -> str:
    """Returns the reason to skip a file with this name; an empty text for a readable one."""
    if PurePosixPath(name).name == DATA_TOML:
        whole = f"only the {DATA_TOML} of the folder itself counts"
        return f"{whole}: name these tables there, by their paths"
    return unread_kind(name)


def unread_kind(name: str) -> str:
    """Returns the reason to skip files of this kind; an empty text for a readable one."""
    if is_data(name):
        return ""
    return f"files of the kind '{PurePosixPath(name).suffix or name}' are not read"


def value_text(value: object) -> str:
    """Returns one value as text: ISO dates, numbers without groups and without binary noise.

    Numbers below 1e15 have no exponent, and whole numbers no decimal mark, whatever their type.
    """
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return _shown_float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _shown_float(value: float) -> str:
    if not isfinite(value):
        return str(value)
    text = f"{value:.15g}"  # as many digits as a float keeps of any decimal number
    rounded = f"{value:.12g}"
    if abs(float(rounded) - value) <= _NOISE * abs(value):  # what a sum leaves behind
        text = rounded
    return f"{Decimal(text):f}" if "e" in text and _LEAST <= abs(value) <= _LARGEST else text


def quoted(name: str) -> str:
    """Returns a name as an SQL identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Returns a text as an SQL literal in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def numbered_columns(names: list[str]) -> list[str]:
    """Returns names of columns that are unique, and none that the engine has for places of rows.

    Example: `rowid` becomes `rowid_2`.
    """
    return numbered(names, _NO_COLUMN)


def numbered(names: list[str], taken_before: Sequence[str] = ()) -> list[str]:
    """Returns the names, with numbers that make repeated ones unique, whatever their case.

    None of them is one of `taken_before`, which are in small letters.
    """
    taken, seen = {name.lower() for name in names}, dict.fromkeys(taken_before, 1)
    new = []
    for name in names:
        free, count = name, seen.get(name.lower(), 0)
        while free.lower() in seen or (count > 1 and free.lower() in taken):
            count += 1
            free = f"{name}_{count}"
        seen[name.lower()], seen[free.lower()] = max(count, 1), 1
        new.append(free)
    return new
