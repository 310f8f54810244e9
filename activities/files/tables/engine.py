"""The engine in which a table is made, and what is written of it: a Parquet file and a description of each column."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unicodedata import category, normalize

import duckdb

from activities.files.texts import Unreadable
from activities.files.values import literal, quoted, shown

Json = dict[str, Any]

ROWS = 10_000_000
TABLE_VALUES = 200  # distinct values of a text column that are listed
_MEMORY = "128MB"
_NAME_CHARS = 60
_VALUE_CHARS = 300
_SOME_VALUES = 50  # of a column that has more
_NARROW, _WIDE_VALUES = 40, 5  # a table of more columns lists few values of each
_RESERVED = {row[0] for row in duckdb.execute(
    "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
).fetchall()}  # fmt: skip


@contextlib.contextmanager
def engine(out: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine that keeps little in memory and the rest in a file that is deleted at the end."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _MEMORY,
        "threads": "1",
        "async_threads": "1",  # each has a stack
        "preserve_insertion_order": "true",
        "temp_directory": str(out / "spill"),
        "autoload_known_extensions": "false",
        "autoinstall_known_extensions": "false",
    }
    try:
        with duckdb.connect(str(out / "texts.duckdb"), config=config) as database:
            # A program without a file counts as interactive: after two seconds a bar would stand in its reply.
            database.execute("SET enable_progress_bar = false")
            yield database
    except duckdb.Error as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "bad allocation" in str(error):
            raise MemoryError from None  # ends the process: what it still holds would be missing for the next file
        raise
    finally:
        for file in out.glob("texts.duckdb*"):
            file.unlink()


def write_table(
    database: duckdb.DuckDBPyConnection, stem: str, out: Path, columns: dict[str, str], notes: list[str]
) -> Json:
    """Writes the table of the texts as Parquet, each column by its SQL. Returns its description.

    The rows can be read afterwards from the view `typed`, with their numbers from 0 in `file_row_number`.
    """
    (rows,) = database.execute("SELECT count(*) FROM texts").fetchone() or (0,)
    if rows > ROWS:
        raise Unreadable(f"it has {rows:,} rows, at most {ROWS:,} are read")
    file = out / "table.parquet"
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    database.execute(f"COPY (SELECT {listed} FROM texts) TO {literal(str(file))} (FORMAT parquet)")
    read = f"read_parquet({literal(str(file))}, file_row_number = true)"
    database.execute(f"CREATE VIEW typed AS SELECT * FROM {read}")
    kinds = database.execute("DESCRIBE typed").fetchall()[: len(columns)]
    described = [_described(database, name, kind, len(kinds)) for name, kind, *_ in kinds]
    return {"name": table_name(stem), "file": str(file), "rows": rows, "columns": described, "notes": notes}


def _described(database: duckdb.DuckDBPyConnection, name: str, kind: str, columns: int) -> Json:
    """Returns name and type of one of many columns, with its distinct texts (the first ones of many) or its range."""
    column = quoted(name)
    if kind != "VARCHAR":
        found = database.execute(f"SELECT min({column}), max({column}) FROM typed").fetchone() or ()
        return {"name": name, "sql": sql_name(name), "type": kind, "range": [shown(value) for value in found]}
    distinct = f"SELECT DISTINCT left({column}, {_VALUE_CHARS}) FROM typed WHERE {column} IS NOT NULL"
    values = [value for (value,) in database.execute(f"{distinct} LIMIT {TABLE_VALUES + 1}").fetchall()]
    more, most = 0, TABLE_VALUES if columns <= _NARROW else _WIDE_VALUES
    if len(values) > most:
        (count,) = database.execute(f"SELECT count(DISTINCT {column}) FROM typed").fetchone() or (0,)
        values = sorted(values)[: min(most, _SOME_VALUES)]
        more = count - len(values)
    return {"name": name, "sql": sql_name(name), "type": kind, "values": sorted(values), "more": more}


def table_name(stem: str) -> str:
    """Returns a name for a table that needs no quotes: letters of any script with their marks, digits, underscores."""
    kept = [c if c == "_" or category(c)[0] in "LMN" else " " for c in normalize("NFC", stem.lower())]
    name = "_".join("".join(kept).split()).strip("_")[:_NAME_CHARS] or "table"
    return f"t_{name}" if name[0].isdigit() or name in _RESERVED else name


def sql_name(name: str) -> str:
    """Returns the name of a column as a query has to write it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in _RESERVED else quoted(name)
