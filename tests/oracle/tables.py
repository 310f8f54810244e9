"""A table of a set, read by the project's own reader, so that names and values are those that an agent is shown."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import duckdb

from activities.files.table_files import csv_tables
from activities.files.values import quoted, value_text

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """The name of a table in SQL, its columns, its rows, and the file that holds them."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[Row, ...]
    file: str

    def answer(self, sql: str) -> list[Row]:
        """Returns the rows of a query."""
        return _database(self.name, self.file).execute(sql).fetchall()

    def is_number(self, column: str) -> bool:
        """True for a column of numbers."""
        kind = self.kinds[self.columns.index(column)]
        return kind.split("(")[0] in {"BIGINT", "HUGEINT", "INTEGER", "DOUBLE", "DECIMAL"}

    def cells(self, column: str) -> list[str]:
        """Returns the cells of a column as they are shown, without empty ones."""
        at = self.columns.index(column)
        return [value_text(row[at]) for row in self.rows if row[at] is not None]


@cache
def _database(name: str, file: str) -> duckdb.DuckDBPyConnection:
    """Returns an engine with a table; one for each query would take most of an oracle's time."""
    database = duckdb.connect(config={"threads": 1})
    database.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM '{file}'")
    return database


@cache
def table_of(path: Path) -> Table:
    """Returns the table of a file."""
    (read,) = csv_tables(path, Path(mkdtemp(prefix="oracle-")))
    with duckdb.connect() as database:
        rows = tuple(database.execute(f"SELECT * FROM '{read['file']}'").fetchall())
    columns = tuple(column["name"] for column in read["columns"])
    kinds = tuple(column["type"] for column in read["columns"])
    return Table(read["name"], columns, kinds, rows, read["file"])


def words_of(text: str) -> set[str]:
    """Returns the words of a text, without those of grammar."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return {_stem(word) for word in found} - _GRAMMAR


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


_GRAMMAR = frozenset(
    {
        "the",
        "of",
        "in",
        "is",
        "wa",
        "what",
        "how",
        "many",
        "wer",
        "and",
        "to",
        "for",
        "a",
        "from",
        "did",
    }
)
