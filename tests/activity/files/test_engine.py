"""The description of a table: what is written of each column, and how many queries that takes."""

from pathlib import Path
from typing import Any

import duckdb

from activities.files.tables.engine import engine, write_table

COLUMNS = 300


class Counting:
    """A connection that counts its queries."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self.database, self.queries = database, 0

    def execute(self, query: str) -> duckdb.DuckDBPyConnection:
        """Runs a query."""
        self.queries += 1
        return self.database.execute(query)


def described(tmp_path: Path, texts: str, columns: dict[str, str]) -> tuple[list[Any], int]:
    """Returns the descriptions of the columns of a table, and the number of queries."""
    with engine(tmp_path) as database:
        database.execute(f"CREATE TABLE texts AS {texts}")
        counting: Any = Counting(database)
        return write_table(counting, "t", tmp_path, columns, [])["columns"], counting.queries


def test_a_wide_table_is_described_by_few_queries(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(COLUMNS)]
    cells = ", ".join(f"'v' || (range % {number + 1}) AS {name}" for number, name in enumerate(names))
    sql = {name: name if number % 2 else f"length({name})" for number, name in enumerate(names)}
    columns, queries = described(tmp_path, f"SELECT {cells} FROM range(150)", sql)
    assert len(columns) == COLUMNS
    assert queries < COLUMNS / 5
    assert columns[2]["range"] == ["2", "2"]
    assert (columns[1]["values"], columns[1]["more"]) == (["v0", "v1"], 0)
    assert (columns[9]["values"], columns[9]["more"]) == (["v0", "v1", "v2", "v3", "v4"], 5)


def test_texts_that_are_many_long_or_missing_are_described_alike_in_short_and_long_tables(
    tmp_path: Path,
) -> None:
    cells = {
        "few": "CASE WHEN range % 3 > 0 THEN 'f' || (range % 3) END",
        "none": "CAST(NULL AS VARCHAR)",
        "many": "'m' || (range % 251)",
        "long": "repeat('x', 300) || (range % 2)",
    }
    picked = ", ".join(f"{sql} AS {name}" for name, sql in cells.items())
    found = []
    for rows in (1_000, 5_000):
        columns, _ = described(tmp_path, f"SELECT {picked} FROM range({rows})", {name: name for name in cells})
        found.append({column["name"]: column for column in columns})
    short, whole = found
    assert (short["few"]["values"], short["few"]["more"]) == (["f1", "f2"], 0)
    assert short["none"]["values"] == []
    assert (len(short["many"]["values"]), short["many"]["more"]) == (50, 201)
    assert short["long"]["values"] == ["x" * 300]
    assert [short[name] for name in ("few", "none", "long")] == [whole[name] for name in ("few", "none", "long")]
