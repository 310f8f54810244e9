"""Tables of a file, each as a Parquet file: CSV of any kind, Parquet, JSON, spreadsheets, SQLite.

The readers run in a child process. They import a library only for the kind of file that needs it,
because each process pays for it.
"""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from activities.files.descriptions import TableDescription
from activities.files.tables.column_reading import ColumnReading
from activities.files.tables.columns import read_columns, reading_json
from activities.files.tables.endings import (
    drop_repeated_headers,
    move_headings,
    take_notes_below,
    totals,
)
from activities.files.tables.engine import engine, table_name, write_table
from activities.files.tables.headers import Header, Row, find_header
from activities.files.tables.number_shapes import TYPED
from activities.files.tables.profiles import untyped
from activities.files.texts import CHUNK, Unreadable, as_utf8
from activities.files.values import Cell, literal, numbered, numbered_columns, quoted
from temporal_supervisor.supervision.base.json_object import JsonObject

"""A cell of a row: a number is one already, a text is read by its column."""
Rows = Callable[[], Iterable[Sequence[Cell]]]

_COLUMNS = 500  # with more, a table of numbers needs more memory than there is
_TABLES = 500  # of one file: each takes some 20 ms and a file
_SAMPLE_LINES = 200
_SAMPLE_LINE_CHARS = 1 << 16  # of a longer line several are made
_DELIMITERS = (",", ";", "\t", "|")
_SAME_WIDTH = 0.5  # of the lines of a sample; with fewer the file has no fields
_FIRST_SHEETS = ("sheet1", "tabelle1", "feuil1")  # what a program names the first one
_NAME_CHARS = 60
_LINE_CHARS = 80
_LINE_BYTES = 4 << 20
_NOTE_CHARS = 200
_WHOLE = 1e15  # a whole number below it is exact
_AS_WRITTEN = {
    "written": "",
    "value": "",
    "decision": "as its source has it",
    "why": "its source has types",
    "unit": "",
}
# Two quotation marks inside a field, as in `5"" pipe`; not an empty field.
_DOUBLED = re.compile(r'[^,;\t|\r\n]""|""[^,;\t|\r\n]')
_SQLITE_TABLES = """
    SELECT name FROM pragma_table_list
    WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1
"""
_NESTED = ("STRUCT", "MAP", "UNION", "JSON", "BLOB")
_UNNAMED = re.compile(r"column_\d+")


class Dialect(NamedTuple):
    """The syntax of a file's fields, and the number of fields in most lines."""

    delimiter: str
    escape: str
    width: int


def csv_tables(
    path: Path,
    out: Path,
    described: TableDescription | None = None,
) -> list[JsonObject]:
    """Returns the only table of a text file with separated fields, read as `described`."""
    described = _description_of(described, path.stem)
    plain = as_utf8(path, out)
    sample = _sample(plain)
    dialect = _dialect(sample)
    rows = _parse_rows(sample, dialect)
    header = find_header(rows, dialect.width, _given_header(described))
    semicolons = dialect.delimiter == ";"
    table = _csv_table(plain, path.stem, out, dialect, header, described, semicolons=semicolons)
    if plain != path:
        plain.unlink()
    return [table]


def row_tables(
    sheets: Iterable[tuple[str, Rows]],
    path: Path,
    out: Path,
    described: TableDescription | None = None,
    *,
    source_is_typed: bool = False,
) -> list[JsonObject]:
    """Returns a table for each sheet of rows. Raises Unreadable if no sheet can be read.

    A sheet that can't be read becomes a note on the first table. Numbers among the cells are taken
    as they are. If the `source_is_typed`, the first row has the columns' names, and texts are never
    numbers.
    """
    sheets = list(sheets)
    if len(sheets) > _TABLES:
        most = f"it has {len(sheets):,} tables, at most {_TABLES:,} are read"
        raise Unreadable(f"{most}: copy those needed into a file")

    tables: list[JsonObject] = []
    problems: list[str] = []
    for sheet, rows in sheets:
        has_own_name = sheet.lower() not in (*_FIRST_SHEETS, path.stem.lower())
        stem = f"{path.stem}_{sheet}" if has_own_name else path.stem
        said = _description_of(described, stem)
        try:
            table = _sheet_table(rows, path.stem, out, said, source_is_typed=source_is_typed)
            if table is None:
                continue
            target = out / f"{len(tables)}.parquet"
            Path(table["file"]).rename(target)
            tables.append(table | {"name": table_name(stem), "file": str(target)})
        except MemoryError:
            problems.append(f"'{sheet}' can't be read: it needs too much memory")
        except Exception as error:  # of the library that reads the sheet
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            problems.append(f"'{sheet}' can't be read: {reason[:100]}")

    if problems and not tables:
        raise Unreadable(problems[0])
    if problems:
        tables[0]["notes"] += problems
    return tables


def _sheet_table(
    rows: Rows,
    stem: str,
    out: Path,
    described: TableDescription | None,
    *,
    source_is_typed: bool,
) -> JsonObject | None:
    """Returns the table of some rows; None if all are empty."""
    cells = (list(map(_cell_text, row)) for row in rows())
    sample = islice(cells, _SAMPLE_LINES)
    first = [Row(number, number, row) for number, row in enumerate(sample, 1)]
    width = max((len(row.cells) for row in first if any(row.cells)), default=0)
    if not width:
        return None
    header = find_header(first, width, [1] if source_is_typed else _given_header(described))

    plain = out / "sheet.csv"
    try:
        with plain.open("w", encoding="utf-8", errors="replace", newline="") as file:
            data = (row.cells for row in first[header.skip :])
            csv.writer(file).writerows(row for row in chain(data, cells) if any(row))
        return _csv_table(
            plain,
            stem,
            out,
            Dialect(",", '"', width),
            header._replace(skip=0),  # only what is below it was written
            described,
            has_typed=True,
            texts_are_numbers=not source_is_typed,
        )
    finally:
        plain.unlink()


def _cell_text(cell: Cell) -> str:
    """Returns a cell as written to a file; a number is marked, so that it is not parsed as text."""
    if cell is None:
        return ""
    if isinstance(cell, (int, float)) and not isinstance(cell, bool) and math.isfinite(cell):
        return f"{TYPED}{cell!r}"
    return str(cell).replace("\0", "").lstrip(TYPED)


def _csv_table(
    plain: Path,
    stem: str,
    out: Path,
    dialect: Dialect,
    header: Header,
    described: TableDescription | None,
    *,
    semicolons: bool = False,
    has_typed: bool = False,
    texts_are_numbers: bool = True,
) -> JsonObject:
    """Returns the table of a file in UTF-8 with separated fields."""
    names = header.names
    if len(names) > _COLUMNS:
        raise Unreadable(f"it has {len(names):,} columns, at most {_COLUMNS:,} are read")
    with engine(out) as database:
        notes = _load(database, plain, dialect, header)
        above = " / ".join(header.above)[:_NOTE_CHARS]
        if above:
            notes.append(f"what stands above the header is left out: {above!r}")
        below: list[str] = []
        if texts_are_numbers:
            notes += drop_repeated_headers(database, names, header.rows)
            below = take_notes_below(database, names)
            notes += move_headings(database, names)
        if below:
            noted = " / ".join(below)[:_NOTE_CHARS]
            notes.append(f"what stands below the data is left out: {noted!r}")
        readings = read_columns(
            database,
            names,
            semicolons=semicolons,
            has_typed=has_typed,
            texts_are_numbers=texts_are_numbers,
            described=described,
        )
        table = _typed_table(database, stem, out, readings, notes)
    return table | {"above": header.above, "below": below, "header": header.lines}


def _load(
    database: duckdb.DuckDBPyConnection,
    plain: Path,
    dialect: Dialect,
    header: Header,
) -> list[str]:
    """Reads a file into the table `texts`, without empty lines. Returns notes on missing parts."""
    fields = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header.names)
    options = {
        "delim": literal(dialect.delimiter),
        "quote": "'\"'",
        "escape": literal(dialect.escape),
        "header": "false",
        "skip": str(header.skip),
        "columns": f"{{{fields}}}",
        "auto_detect": "false",
        "null_padding": "true",
        "strict_mode": "true",
        "parallel": "false",
        "ignore_errors": "true",
        "store_rejects": "true",
        "max_line_size": str(_LINE_BYTES),
        "buffer_size": str(2 * _LINE_BYTES),  # else it is 32 lines: 128 MiB
    }
    listed = ", ".join(f"{name} = {value}" for name, value in options.items())
    blank = " AND ".join(f"{quoted(name)} IS NULL" for name in header.names)
    rows = f"SELECT * FROM read_csv(?, {listed}) WHERE NOT ({blank})"
    database.execute(f"CREATE TABLE texts AS {rows}", [str(plain)])

    notes: list[str] = []
    rejected = "SELECT count(DISTINCT line), min_by(csv_line, line) FROM reject_errors"
    count, first = database.execute(rejected).fetchone() or (0, "")
    if count:
        lost = f"{count:,} row{'s' * (count > 1)} cannot be read"
        notes.append(f"{lost}, the first is {str(first)[:_LINE_CHARS]!r}")
    with plain.open("rb") as file:
        marks = sum(chunk.count(b'"') for chunk in iter(partial(file.read, CHUNK), b""))
    if marks % 2:
        odd = "it has an odd number of quotation marks"
        notes.append(f"{odd}: what follows one of them may be missing")
    return notes


def _typed_table(
    database: duckdb.DuckDBPyConnection,
    stem: str,
    out: Path,
    readings: dict[str, ColumnReading],
    notes: list[str],
    typed: dict[str, str] | None = None,
) -> JsonObject:
    """Returns the table of the texts, with each column converted by its reading.

    For a source with types, `typed` maps all columns to their SQL, in order; columns without a
    reading stay as they are.
    """
    seen: dict[str, JsonObject] = {}
    columns: dict[str, str] = {}  # those of the table, with their SQL
    for name, planned in readings.items():
        as_written = ""
        if planned.missed:
            as_written = numbered([*readings, f"{name} as written"])[-1]
            missed = f"{planned.missed:,} values do not fit its description"
            notes.append(f"{name}: {missed}, they stand in {as_written!r} alone")
            database.execute(f"ALTER TABLE texts ADD COLUMN {quoted(as_written)} VARCHAR")
            database.execute(f"UPDATE texts SET {quoted(as_written)} = {quoted(name)}")

        reading = _convert_column(database, name, planned)
        seen[name] = reading_json(database, name, reading)
        notes += reading.notes
        if not (_UNNAMED.fullmatch(name) and _is_empty(database, name)):
            columns[name] = quoted(name)
        if as_written:
            columns[as_written] = quoted(as_written)

    if typed:
        columns = {name: columns.get(name, sql) for name, sql in typed.items()} | columns
    if not columns:  # all are empty and without a name
        columns = {name: quoted(name) for name in readings}
    table = write_table(database, stem, out, columns, notes)
    for column in table["columns"]:
        column["reading"] = seen.get(column["name"], _AS_WRITTEN)
        column["unit"] = column["reading"]["unit"]
    table["notes"] += totals(database, table["columns"])
    return table


def _convert_column(
    database: duckdb.DuckDBPyConnection,
    name: str,
    reading: ColumnReading,
) -> ColumnReading:
    """Converts a column of `texts` by its reading. Returns it, or another if that is impossible.

    Columns are converted one by one, because an expression over a column takes some 2 MiB.
    """
    alter = f"ALTER TABLE texts ALTER {quoted(name)} TYPE"
    try:
        if reading.sql:
            database.execute(f"{alter} {reading.kind} USING {reading.sql}")
    except duckdb.ConversionException:  # a number beyond the engine's
        why = "a value is no number that can be stored"
        return ColumnReading(why=why, written=reading.written)
    if not reading.sql and reading.has_typed:
        database.execute(f"{alter} VARCHAR USING {untyped(name)}")
    return reading


def _is_empty(database: duckdb.DuckDBPyConnection, name: str) -> bool:
    return database.execute(f"SELECT count({quoted(name)}) FROM texts").fetchone() == (0,)


def _description_of(described: TableDescription | None, stem: str) -> TableDescription | None:
    """Returns the description of one table of a described file."""
    return described.of_table(table_name(stem)) if described else None


def _given_header(described: TableDescription | None) -> list[int] | None:
    """Returns the described rows of the header, empty for no header; None if not described."""
    if described is None or described.header is None:
        return None
    return [described.header] if isinstance(described.header, int) else described.header


def _sample(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = list(islice(iter(partial(file.readline, _SAMPLE_LINE_CHARS), ""), _SAMPLE_LINES))
    if not any(line.strip() for line in lines):
        raise Unreadable("it is empty")
    return lines


def _parse_rows(sample: list[str], dialect: Dialect) -> list[Row]:
    escape = dialect.escape if dialect.escape != '"' else None
    reader = csv.reader(sample, delimiter=dialect.delimiter, escapechar=escape)
    return [Row(number, reader.line_num, cells) for number, cells in enumerate(reader, 1)]


def _dialect(sample: list[str]) -> Dialect:
    """Returns the delimiter, the escape and the number of fields in most lines of the sample."""
    text = "".join(sample)
    doubled = _DOUBLED.search(text.replace('\\"', ""))
    escape = "\\" if '\\"' in text and not doubled else '"'

    def share_and_width(delimiter: str) -> tuple[float, int]:
        rows = _parse_rows(sample, Dialect(delimiter, escape, 0))
        widths = Counter(len(row.cells) for row in rows if any(row.cells))
        several = [(count, width) for width, count in widths.items() if width > 1]
        count, width = max(several, default=(0, 1))
        return (count / widths.total() if count else 0.0, width)

    best = max(_DELIMITERS, key=share_and_width)
    share, width = share_and_width(best)
    return Dialect(best, escape, width) if share >= _SAME_WIDTH else Dialect(",", escape, 1)


def spreadsheet_tables(
    path: Path,
    out: Path,
    described: TableDescription | None = None,
) -> list[JsonObject]:
    """Returns a table for each sheet of a spreadsheet that has rows."""
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
    except python_calamine.PasswordError:
        raise Unreadable("it is encrypted") from None
    except python_calamine.CalamineError as error:
        raise Unreadable(f"it is no spreadsheet that can be read: {error}") from None
    sheets = ((name, partial(_sheet_rows, book, name)) for name in book.sheet_names)
    return row_tables(sheets, path, out, described)


def _sheet_rows(book: Any, name: str) -> Iterator[list[Cell]]:
    for row in book.get_sheet_by_name(name).iter_rows():
        yield [_cell(value) for value in row]


def _cell(value: object) -> Cell:
    if isinstance(value, float):
        rounded = float(f"{value:.15g}")  # as a spreadsheet shows it
        return int(rounded) if rounded.is_integer() and abs(rounded) < _WHOLE else rounded
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("T00:00:00", "").replace("T", " ")
    if value is None:
        return ""
    return value if isinstance(value, (int, str)) else str(value)


def sqlite_tables(
    path: Path,
    out: Path,
    described: TableDescription | None = None,
) -> list[JsonObject]:
    """Returns the tables of an SQLite file."""
    import sqlite3

    with sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True) as database:
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            names = [name for (name,) in database.execute(_SQLITE_TABLES)]
            sheets = ((name, partial(_sqlite_rows, database, name)) for name in names)
            return row_tables(sheets, path, out, described, source_is_typed=True)
        except sqlite3.Error as error:
            raise Unreadable(f"it is no SQLite database that can be read: {error}") from None


def _sqlite_rows(database: Any, table: str) -> Iterator[list[Cell]]:
    cursor = database.execute(f"SELECT * FROM {quoted(table)}")
    yield [column[0] for column in cursor.description]
    for row in cursor:
        yield ["(binary)" if isinstance(value, bytes) else value for value in row]


def _engine_table(
    reader: str,
    path: Path,
    out: Path,
    described: TableDescription | None = None,
    *,
    texts_are_numbers: bool = False,
) -> list[JsonObject]:
    """Returns the only table of a file that the engine reads with its own types.

    With `texts_are_numbers` its text columns are read like those of any other file.
    """
    about = _description_of(described, path.stem) or TableDescription()
    with engine(out) as database:
        found = database.execute(f"DESCRIBE SELECT * FROM {reader}", [str(path)]).fetchall()
        if len(found) > _COLUMNS:
            raise Unreadable(f"it has {len(found):,} columns, at most {_COLUMNS:,} are read")
        database.execute(f"CREATE TABLE texts AS SELECT * FROM {reader}", [str(path)])

        columns: dict[str, str] = {}
        texts: list[str] = []
        names = [_column_name(name, number) for number, (name, *_) in enumerate(found, 1)]
        for new, (name, kind, *_) in zip(numbered_columns(names), found, strict=True):
            if new != name:
                database.execute(f"ALTER TABLE texts RENAME {quoted(name)} TO {quoted(new)}")
            is_nested = kind.startswith(_NESTED) or kind.endswith("]")
            columns[new] = f"CAST({quoted(new)} AS VARCHAR)" if is_nested else quoted(new)
            if kind == "VARCHAR":
                texts.append(new)

        readings = read_columns(database, texts, described=about) if texts_are_numbers else {}
        table = _typed_table(database, path.stem, out, readings, [], columns)
        for column in table["columns"]:
            own = about.columns.get(column["name"])
            if own and own.unit:
                column["reading"] = column["reading"] | {"unit": own.unit}
                column["unit"] = own.unit
        return [table]


parquet_tables = partial(_engine_table, "read_parquet(?)")
# of objects: a list of them, or one on each line
_JSON = "read_json_auto(?, records = 'true', maximum_object_size = 4194304)"
json_tables = partial(_engine_table, _JSON, texts_are_numbers=True)


def _column_name(cell: str, number: int) -> str:
    """Returns a name as it is shown, on one line; a column without one has its number."""
    return re.sub(r"\s+", " ", cell).strip()[:_NAME_CHARS] or f"column_{number}"
