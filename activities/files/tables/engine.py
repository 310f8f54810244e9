"""The engine in which a table is built, and its output: a Parquet file and described columns."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category, normalize

import duckdb

from activities.files.texts import Unreadable
from activities.files.values import ENGINE_ROW_PLACE, literal, quoted, value_text
from temporal_supervisor.supervision.base.json_object import JsonObject

Distinct = tuple[list[str], int]
"""Texts of a column without repetitions, and how many there are in all."""

ROWS = 10_000_000
TABLE_VALUES = 200  # distinct values of a text column that are listed
_MEMORY = "128MB"
_NAME_CHARS = 60
_VALUE_CHARS = 300
_SOME_VALUES = 50  # of a column that has more
_NARROW, _WIDE_VALUES = 40, 5  # a table of more columns lists few values of each
_COLUMNS_AT_ONCE = 20  # asked about in one query
_SHORT_TABLE = 4_000  # rows that are read at once, which is quicker than a query for each column
_RESERVED = {row[0] for row in duckdb.execute(
    "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
).fetchall()}  # fmt: skip


@contextlib.contextmanager
def engine(out: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens an engine that keeps little in memory and the rest in a file, deleted at the end."""
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
            # A program without a file counts as interactive: after two seconds a bar would be in
            # its reply.
            database.execute("SET enable_progress_bar = false")
            yield database
    except duckdb.Error as error:
        if isinstance(error, duckdb.OutOfMemoryException) or "bad allocation" in str(error):
            # Ends the process: the memory that it still holds would be missing for the next file.
            raise MemoryError from None
        raise
    finally:
        for file in out.glob("texts.duckdb*"):
            file.unlink()


def write_table(
    database: duckdb.DuckDBPyConnection,
    stem: str,
    out: Path,
    columns: dict[str, str],
    notes: list[str],
) -> JsonObject:
    """Writes the table of the texts as Parquet, with each column by its SQL.

    Returns its description. Afterwards the view `typed` has the rows, numbered from 0 in
    ENGINE_ROW_PLACE.
    """
    (rows,) = database.execute("SELECT count(*) FROM texts").fetchone() or (0,)
    if rows > ROWS:
        raise Unreadable(f"it has {rows:,} rows, at most {ROWS:,} are read")
    file = out / "table.parquet"
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    database.execute(f"COPY (SELECT {listed} FROM texts) TO {literal(str(file))} (FORMAT parquet)")
    read = f"read_parquet({literal(str(file))}, {ENGINE_ROW_PLACE} = true)"
    database.execute(f"CREATE VIEW typed AS SELECT * FROM {read}")
    kinds = database.execute("DESCRIBE typed").fetchall()[: len(columns)]
    source = f"read_parquet({literal(str(file))})"
    described = _describe_columns(database, source, rows, {name: kind for name, kind, *_ in kinds})
    return {
        "name": table_name(stem),
        "file": str(file),
        "rows": rows,
        "columns": described,
        "notes": notes,
    }


def _describe_columns(
    database: duckdb.DuckDBPyConnection,
    source: str,
    rows: int,
    kinds: dict[str, str],
) -> list[JsonObject]:
    """Returns name and type of each column, with its distinct texts or its range.

    A column with many texts has only the first ones. Columns share queries where possible, because
    each query binds all columns of the file.
    """
    most = TABLE_VALUES if len(kinds) <= _NARROW else _WIDE_VALUES
    ranges = _ranges(database, source, [name for name, kind in kinds.items() if kind != "VARCHAR"])
    texts = [name for name, kind in kinds.items() if kind == "VARCHAR"]
    values = _few_values(database, source, texts) if 0 < rows <= _SHORT_TABLE else {}
    described = list[JsonObject]()
    for name, kind in kinds.items():
        about = {"name": name, "sql": sql_name(name), "type": kind}
        if kind != "VARCHAR":
            described.append({**about, "range": ranges[name]})
            continue
        listed, count = values.get(name) or _many_values(database, source, name)
        few = sorted(listed)
        if len(few) > most:
            few = few[: min(most, _SOME_VALUES)]
        more = count - len(few) if len(listed) > most else 0
        described.append({**about, "values": few, "more": more})
    return described


def _ranges(
    database: duckdb.DuckDBPyConnection,
    source: str,
    names: list[str],
) -> dict[str, list[str]]:
    """Returns the smallest and the largest value of each column, as text."""
    ranges = dict[str, list[str]]()
    for some in _batches(names):
        asked = ", ".join(f"min({quoted(name)}), max({quoted(name)})" for name in some)
        values = database.execute(f"SELECT {asked} FROM {source}").fetchone() or ()
        found = [value_text(value) for value in values]
        ranges |= {name: found[2 * at : 2 * at + 2] for at, name in enumerate(some)}
    return ranges


def _few_values(
    database: duckdb.DuckDBPyConnection,
    source: str,
    names: list[str],
) -> dict[str, Distinct]:
    """Returns the texts of each column that has few short ones, in a short table."""
    values = dict[str, Distinct]()
    for some in _batches(names):
        columns = [quoted(name) for name in some]
        longest = ", ".join(f"max(length({column}))" for column in columns)
        lengths = database.execute(f"SELECT {longest} FROM {source}").fetchone() or ()
        begun = ", ".join(f"left({column}, {_VALUE_CHARS})" for column in columns)
        cells = zip(*database.execute(f"SELECT {begun} FROM {source}").fetchall(), strict=True)
        for name, length, texts in zip(some, lengths, cells, strict=True):
            distinct = {*texts} - {None}
            if (length or 0) <= _VALUE_CHARS and len(distinct) <= TABLE_VALUES:
                values[name] = [*distinct], len(distinct)
    return values


def _many_values(database: duckdb.DuckDBPyConnection, source: str, name: str) -> Distinct:
    """Returns some of the texts of a column."""
    column = quoted(name)
    filled = f"FROM {source} WHERE {column} IS NOT NULL"
    some = f"SELECT DISTINCT left({column}, {_VALUE_CHARS}) {filled} LIMIT {TABLE_VALUES + 1}"
    values = [value for (value,) in database.execute(some).fetchall()]
    (count,) = database.execute(f"SELECT count(DISTINCT {column}) FROM {source}").fetchone() or (0,)
    return values, count


def _batches(names: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), _COLUMNS_AT_ONCE):
        yield names[at : at + _COLUMNS_AT_ONCE]


def table_name(stem: str) -> str:
    """Returns a name for a table that needs no quotes: `2024 Sales` becomes `t_2024_sales`."""
    signs = normalize("NFC", stem.lower())
    kept = [sign if sign == "_" or category(sign)[0] in "LMN" else " " for sign in signs]
    name = "_".join("".join(kept).split()).strip("_")[:_NAME_CHARS] or "table"
    return f"t_{name}" if name[0].isdigit() or name in _RESERVED else name


def sql_name(name: str) -> str:
    """Returns the name of a column for a query, in quotes if it needs them."""
    is_plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None
    return name if is_plain and name.lower() not in _RESERVED else quoted(name)
