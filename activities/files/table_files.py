"""Tables of a file, each as a Parquet file: CSV of any kind, Parquet, JSON, spreadsheets, SQLite.

Runs in a child process. Imports a library only for the kind of file that needs it: each process pays for it.
"""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, normalize

import duckdb

from activities.files.texts import CHUNK, Unreadable, as_utf8
from activities.files.values import literal, numbered, quoted, shown

Json = dict[str, Any]

ROWS = 10_000_000
_COLUMNS = 500  # with more, a table of numbers needs more memory than there is
_TABLES = 500  # of one file: each takes some 20 ms and a file
_MEMORY = "128MB"
_SAMPLE_LINES = 200
_DELIMITERS = (",", ";", "\t", "|")
_SAME_WIDTH = 0.5  # of the lines of a sample; with fewer the file has no fields
_NAME_CHARS = 60
_VALUE_CHARS = 300
TABLE_VALUES = 200  # distinct values of a text column that are listed
_SOME_VALUES = 50  # of a column that has more
_NARROW, _WIDE_VALUES = 40, 5  # a table of more columns lists few values of each
_LINE_CHARS = 80
_LINE_BYTES = 4 << 20
_RESERVED = {row[0] for row in duckdb.execute(
    "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
).fetchall()}  # fmt: skip
_NUMBERLIKE = re.compile(r"[+-]?[€$£]?\d[\d.,\s]*[%€$£]?")

Rows = Callable[[], Iterable[list[str]]]
Scalar = Callable[..., tuple[int, ...]]
"""Returns the row of some aggregates over the table, or over some rows of it."""

BLANKS = ("", "-", "–", "na", "n/a", "#n/a", "null", "none", "nan", "k.a.", "?")
_MOSTLY = 0.8  # of a column's values: with fewer numbers or dates among them it is meant as text

_SIGNS = "[€$£¥%\\s\u00a0\u202f'’]"
_GROUPS = r"^[+-]?\d{1,3}(,\d{3})+$"
_POINT = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_COMMA = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$|^[+-]?\d+(,\d+)?$"
_IDENTIFIER = r"^0\d+$|^\d{19,}$"
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y")
_DATES = {
    "": _DAYS,
    "dates are read day first": ("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y"),
    "dates are read month first": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y"),
}
# every text of these shapes
_ALIKE = r"^(\d{1,4}[./ -] *(\d{1,2}|[A-Za-z]{3,9})[./ -] *\d{1,4}|[A-Za-z]{3,9} +\d{1,2}, *\d{4})( +\d.*)?$"
_TIMES = {"DATE": [""], "TIMESTAMP": ["", " %H:%M", " %H:%M:%S", " %I:%M %p"]}
_FIRST_ROWS = "(FROM texts LIMIT 2000)"  # what most of them are not is not tried on all: each look takes time


class ColumnReading(NamedTuple):
    """A way to read the texts of a column: the type that they get, their shape, the SQL that is cast, and a note."""

    kind: str
    text: str
    shape: str
    sql: str
    note: str = ""

    @property
    def read(self) -> str:
        """The SQL of a value, null for one of another shape: the engine takes texts such as 'nan' for numbers, too."""
        shaped = f"regexp_matches({self.text}, {literal(self.shape)})"
        return f"TRY_CAST(CASE WHEN {shaped} THEN {self.sql} END AS {self.kind})"


def _readings(value: str, *, semicolons: bool) -> list[ColumnReading]:
    """Returns the ways to read a column; the first that fits all values is taken."""
    bare = f"regexp_replace({value}, {literal(_SIGNS)}, '', 'g')"
    grouped = ColumnReading("DOUBLE", bare, _POINT, f"replace({bare}, ',', '')", "commas group thousands")
    decimal = f"replace(replace({bare}, '.', ''), ',', '.')"
    readings = [
        ColumnReading("BIGINT", bare, r"^[+-]?\d{1,18}$", bare),
        ColumnReading("DOUBLE", bare, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", bare),
        *([] if semicolons else [grouped._replace(shape=_GROUPS)]),
        ColumnReading("DOUBLE", bare, _COMMA, decimal, "decimal commas are read as numbers"),
        grouped,
        ColumnReading("DATE", value, r"^\d{4}-\d\d-\d\d$", value),
        ColumnReading("TIMESTAMP", value, r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?$", value),
    ]
    for kind, times in _TIMES.items():
        for note, days in _DATES.items():
            dated = f"try_strptime({value}, {[day + time for day in days for time in times]})"
            readings.append(ColumnReading(kind, value, _ALIKE, dated, note))
    return readings


def typed(name: str, scalars: Scalar, *, semicolons: bool) -> tuple[ColumnReading | None, list[str]]:
    """Returns how to read a column, None for text, and what a reader should know of it.

    All values that are not blank must fit. Identifiers (a leading zero, 19 digits) and ambiguous dates stay text.
    `semicolons` separate the file's fields: then a lone comma is a decimal one.
    """
    value = f"trim({quoted(name)})"
    filled = f"count(*) FILTER (lower({value}) NOT IN ({', '.join(map(literal, BLANKS))}))"
    readings = _readings(value, semicolons=semicolons)
    first, *fits = scalars([filled, *(f"count({each.read})" for each in readings)], _FIRST_ROWS)
    readings = [reading for reading, fit in zip(readings, fits, strict=True) if fit >= _MOSTLY * first]
    identifiers = f"count(*) FILTER (regexp_matches({value}, {literal(_IDENTIFIER)}))"
    signs = f"count(*) FILTER (regexp_matches({value}, {literal(_SIGNS)}))"
    count, odd, signed, *fits = scalars([filled, identifiers, signs, *(f"count({each.read})" for each in readings)])
    if not count or odd or not readings:
        return None, []
    fitting = [reading for reading, fit in zip(readings, fits, strict=True) if fit == count]
    if len({reading.note for reading in fitting if reading.shape == _ALIKE}) > 1:
        return None, [f"{name}: the dates may be read day first or month first, so they stay text"]
    if fitting:
        numbers = fitting[0].text != value
        notes = [fitting[0].note, "the numbers are written with signs such as % or €" if numbers and signed else ""]
        return fitting[0], [f"{name}: {note}" for note in notes if note]
    most = max(fits)
    noun = "dates" if readings[fits.index(most)].text == value else "numbers"
    few = [f"{name}: {count - most} of {count} values are no {noun}, so it stays text"]
    return None, few if most >= _MOSTLY * count else []


def csv_tables(path: Path, out: Path) -> list[Json]:
    """Returns the one table of a text file with separated fields."""
    plain = as_utf8(path, out)
    sample = _sample(plain)
    delimiter, width = _shape(sample)
    skip, names = _header(sample, delimiter, width)
    if len(names) > _COLUMNS:
        raise Unreadable(f"it has {len(names):,} columns, at most {_COLUMNS:,} are read")
    with _engine(out) as database:
        fields = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
        options = {
            "delim": literal(delimiter), "quote": "'\"'", "escape": "'\"'", "header": "false", "skip": str(skip),
            "auto_detect": "false", "null_padding": "true", "strict_mode": "true", "parallel": "false",
            "ignore_errors": "true", "store_rejects": "true", "columns": f"{{{fields}}}",
            "max_line_size": str(_LINE_BYTES), "buffer_size": str(2 * _LINE_BYTES),  # else it is 32 lines: 128 MiB
        }  # fmt: skip
        listed = ", ".join(f"{name} = {value}" for name, value in options.items())
        database.execute(f"CREATE TABLE texts AS SELECT * FROM read_csv(?, {listed})", [str(plain)])
        rejected = "SELECT count(DISTINCT line), min_by(csv_line, line) FROM reject_errors"
        count, first = database.execute(rejected).fetchone() or (0, "")
        rows = f"{count:,} row{'s' * (count > 1)}"
        notes = [f"{rows} cannot be read, the first is {str(first)[:_LINE_CHARS]!r}"] if count else []
        with plain.open("rb") as file:
            if sum(chunk.count(b'"') for chunk in iter(partial(file.read, CHUNK), b"")) % 2:
                notes.append("it has an odd number of quotation marks: what follows one of them may be missing")
        if skip > 1 and names:
            words = " / ".join(filter(None, (line.strip(f'{delimiter}" \r\n\t') for line in sample[: skip - 1])))
            notes.append(f"what stands above the header is left out: {words[: 2 * _LINE_CHARS]!r}")
        table = _typed_table(database, path.stem, out, semicolons=delimiter == ";")
    if plain != path:
        plain.unlink()
    return [table | {"notes": notes + table["notes"]}]


def row_tables(sheets: Iterable[tuple[str, Rows]], path: Path, out: Path) -> list[Json]:
    """Returns a table for each sheet of texts; one that can't be read is a note of the first. Raises Unreadable."""
    sheets, tables, problems = list(sheets), list[Json](), list[str]()
    if len(sheets) > _TABLES:
        raise Unreadable(f"it has {len(sheets):,} tables, at most {_TABLES:,} are read: copy those needed into a file")
    for sheet, rows in sheets:
        plain = out / "sheet.csv"
        try:
            with plain.open("w", encoding="utf-8", errors="replace", newline="") as file:
                csv.writer(file).writerows(row for row in rows() if any(row))
            if plain.stat().st_size:
                (table,) = csv_tables(plain, out)
                own = sheet.lower() not in ("sheet1", "tabelle1", "feuil1", path.stem.lower())
                target = out / f"{len(tables)}.parquet"
                Path(table["file"]).rename(target)
                name = table_name(f"{path.stem}_{sheet}" if own else path.stem)
                tables.append(table | {"name": name, "file": str(target)})
        except Exception as error:  # of the library that reads the sheet
            if isinstance(error, MemoryError):
                error = Unreadable("it needs too much memory")
            problems.append(f"'{sheet}' can't be read: {(str(error).splitlines() or [type(error).__name__])[0][:100]}")
        finally:
            plain.unlink()
    if problems and not tables:
        raise Unreadable(problems[0])
    if problems:
        tables[0]["notes"] += problems
    return tables


def spreadsheet_tables(path: Path, out: Path) -> list[Json]:
    """Returns a table for each sheet of a spreadsheet that has rows."""
    import python_calamine

    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
    except python_calamine.PasswordError:
        raise Unreadable("it is encrypted") from None
    except python_calamine.CalamineError as error:
        raise Unreadable(f"it is no spreadsheet that can be read: {error}") from None
    return row_tables(((name, partial(_sheet_rows, book, name)) for name in book.sheet_names), path, out)


def _sheet_rows(book: Any, name: str) -> Iterator[list[str]]:
    for row in book.get_sheet_by_name(name).iter_rows():
        yield [_cell(value) for value in row]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).replace("T00:00:00", "").replace("T", " ")
    return "" if value is None else str(value)


def sqlite_tables(path: Path, out: Path) -> list[Json]:
    """Returns the tables of an SQLite file."""
    import sqlite3

    with sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True) as database:
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            names = [name for (name,) in database.execute(
                "SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
            )]  # fmt: skip
            return row_tables(((name, partial(_sqlite_rows, database, name)) for name in names), path, out)
        except sqlite3.Error as error:
            raise Unreadable(f"it is no SQLite database that can be read: {error}") from None


def _sqlite_rows(database: Any, table: str) -> Iterator[list[str]]:
    cursor = database.execute(f"SELECT * FROM {quoted(table)}")
    yield [column[0] for column in cursor.description]
    for row in cursor:
        yield ["" if value is None else "(binary)" if isinstance(value, bytes) else str(value) for value in row]


def _engine_table(reader: str, path: Path, out: Path) -> list[Json]:
    """Returns the one table of a file that the engine reads."""
    with _engine(out) as database:
        described = database.execute(f"DESCRIBE SELECT * FROM {reader}", [str(path)]).fetchall()
        if len(described) > _COLUMNS:
            raise Unreadable(f"it has {len(described):,} columns, at most {_COLUMNS:,} are read")
        database.execute(f"CREATE TABLE texts AS SELECT * FROM {reader}", [str(path)])
        nested = ("STRUCT", "MAP", "UNION", "JSON", "BLOB")
        names = numbered([_column_name(name, number) for number, (name, *_) in enumerate(described)])
        columns = {
            new: f"CAST({quoted(name)} AS VARCHAR)" if kind.startswith(nested) or kind.endswith("]") else quoted(name)
            for new, (name, kind, *_) in zip(names, described, strict=True)
        }
        return [_write(database, path.stem, out, columns, [])]


parquet_tables = partial(_engine_table, "read_parquet(?)")
# of objects: a list of them, or one on each line
json_tables = partial(_engine_table, "read_json_auto(?, records = 'true', maximum_object_size = 4194304)")


def _typed_table(database: duckdb.DuckDBPyConnection, stem: str, out: Path, *, semicolons: bool) -> Json:
    names = [name for name, *_ in database.execute("DESCRIBE texts").fetchall()]

    def scalars(selects: list[str], rows: str = "texts") -> tuple[int, ...]:
        return database.execute(f"SELECT {', '.join(selects)} FROM {rows}").fetchone() or ()

    columns = {name: typed(name, scalars, semicolons=semicolons) for name in names}
    for name, (reading, _) in columns.items():  # one by one: an expression over a column takes some 2 MiB
        if reading:
            database.execute(f"ALTER TABLE texts ALTER {quoted(name)} TYPE {reading.kind} USING {reading.read}")
    unnamed = [name for name in names if re.fullmatch(r"column_\d+", name)]
    empty = {name for name in unnamed if not scalars([f"count({quoted(name)})"])[0]}
    kept = [name for name in names if name not in empty] or names
    notes = [note for name in kept for note in columns[name][1]]
    return _write(database, stem, out, {name: quoted(name) for name in kept}, notes)


def _write(
    database: duckdb.DuckDBPyConnection, stem: str, out: Path, columns: dict[str, str], notes: list[str]
) -> Json:
    """Writes the table of the texts as Parquet, each column by its SQL. Returns what is said of it."""
    (rows,) = database.execute("SELECT count(*) FROM texts").fetchone() or (0,)
    if rows > ROWS:
        raise Unreadable(f"it has {rows:,} rows, at most {ROWS:,} are read")
    file = out / "table.parquet"
    listed = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns.items())
    database.execute(f"COPY (SELECT {listed} FROM texts) TO {literal(str(file))} (FORMAT parquet)")
    database.execute(f"CREATE VIEW typed AS SELECT * FROM read_parquet({literal(str(file))})")
    kinds = database.execute("DESCRIBE typed").fetchall()
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


@contextlib.contextmanager
def _engine(out: Path) -> Iterator[duckdb.DuckDBPyConnection]:
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


def _sample(path: Path) -> list[str]:
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = [line for _, line in zip(range(_SAMPLE_LINES), iter(lambda: file.readline(1 << 16), ""), strict=False)]
    if not any(line.strip() for line in lines):
        raise Unreadable("it is empty")
    return lines


def _shape(sample: list[str]) -> tuple[str, int]:
    """Returns the delimiter and the number of fields that most lines of the sample have."""

    def score(delimiter: str) -> tuple[float, int]:
        widths = Counter(len(row) for row in csv.reader(sample, delimiter=delimiter) if any(row))
        width, count = max(widths.items(), key=lambda item: (item[1] * (item[0] > 1), item[0]), default=(1, 0))
        return (count / widths.total() if width > 1 else 0.0, width)

    best = max(_DELIMITERS, key=score)
    share, width = score(best)
    return (best, width) if share >= _SAME_WIDTH else (",", 1)


def _header(sample: list[str], delimiter: str, width: int) -> tuple[int, list[str]]:
    """Returns how many lines are no data, and the names of the columns, from the first line that may be a header."""
    reader, before = csv.reader(sample, delimiter=delimiter), 0
    unnamed = numbered([f"column_{number + 1}" for number in range(width)])
    for row in reader:
        filled = [cell.strip() for cell in row if cell.strip()]
        # one may lack, but a title above two columns is one field, too
        if len(row) >= width - (width > 2) and len(filled) >= max(1, (width + 1) // 2):
            if any(_NUMBERLIKE.fullmatch(cell) and not re.fullmatch(r"(19|20)\d\d", cell) for cell in filled):
                return before, unnamed
            cells = [*row, ""][: max(width, len(row))]  # lines may end with a delimiter that the header lacks
            return reader.line_num, numbered([_column_name(cell, number) for number, cell in enumerate(cells)])
        before = reader.line_num
    return 0, unnamed


def _column_name(cell: str, number: int) -> str:
    return re.sub(r"\s+", " ", cell).strip()[:_NAME_CHARS] or f"column_{number + 1}"


def table_name(stem: str) -> str:
    """Returns a name for a table that needs no quotes: letters of any script with their marks, digits, underscores."""
    kept = [c if c == "_" or category(c)[0] in "LMN" else " " for c in normalize("NFC", stem.lower())]
    name = "_".join("".join(kept).split()).strip("_")[:_NAME_CHARS] or "table"
    return f"t_{name}" if name[0].isdigit() or name in _RESERVED else name


def sql_name(name: str) -> str:
    """Returns the name of a column as a query has to write it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in _RESERVED else quoted(name)
