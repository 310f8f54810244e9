"""Tables of known values in many conventions: whatever is read as a number is the number that was written.

`make tables COUNT=10000` reads as many; here some are read, and as many again by `make test-long`.
"""

import os
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random

import duckdb
import pytest

from activities.files.conversion import convert
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.activity.files.generated_tables import MadeTable, made_table

COUNT = int(os.environ.get("TABLES_COUNT", "48"))
PARTS = 4
_DECIDED_NUMBERS = 0.97  # of the columns whose cells decide their convention


LATER = [pytest.param(part, marks=pytest.mark.long) for part in range(2, PARTS)]


@pytest.mark.parametrize("part", [0, 1, *LATER])
def test_every_number_is_the_one_that_was_written(tmp_path: Path, part: int) -> None:
    counts = Counter[str]()
    wrong = dict[int, list[str]]()
    seeds = range(part, COUNT, PARTS)
    for seed in seeds:
        table = made_table(Random(seed))
        problems = differences(table, tmp_path / "table", counts)
        if problems:
            wrong[seed] = [table.convention, *problems, table.content]
    shown = "\n".join(f"{seed}: {problems}" for seed, problems in list(wrong.items())[:5])
    assert not wrong, f"{len(wrong)} of {len(seeds)} tables: {shown}"
    assert counts["decided numbers"] >= _DECIDED_NUMBERS * counts["decided"], counts
    print(f"{len(seeds)} tables: {dict(counts)}")


@pytest.mark.parametrize("seed", [1482, 2038, 3158, 5028, 1261, 1993, 3935, 5153, 5829])
def test_a_dot_beside_whole_numbers_alone_stays_text_and_says_so(tmp_path: Path, seed: int) -> None:
    table = made_table(Random(seed))
    doubtful = [column.name for column in table.columns if column.in_doubt]
    assert doubtful
    assert differences(table, tmp_path / "table", Counter()) == []
    found = _read(table, tmp_path / "told")
    types = {column["name"]: column["type"] for column in found["columns"]}
    assert {types[name] for name in doubtful} == {"VARCHAR"}
    told = [note for note in found["notes"] if "nobody can tell" in note]
    assert [note.partition(":")[0] for note in told] == doubtful


def test_a_year_in_a_header_that_repeats_is_no_data(tmp_path: Path) -> None:
    table = made_table(Random(6674))
    assert "Region,2011,Net worth 2" in table.content
    assert differences(table, tmp_path / "table", Counter()) == []


def differences(table: MadeTable, folder: Path, counts: Counter[str]) -> list[str]:
    """Returns what a person reads otherwise in a table than the product does; counts its columns."""
    try:
        found = _read(table, folder)
        rows = duckdb.execute(f"SELECT * FROM read_parquet('{found['file']}')").fetchall()
    finally:
        shutil.rmtree(folder)

    counts[table.convention] += 1
    columns = {column["name"]: (at, column) for at, column in enumerate(found["columns"])}
    names = [column.name for column in table.columns]
    if list(columns) != names:
        return [f"the columns are {list(columns)}, not {names}"]
    problems = [] if len(rows) == table.rows else [f"{len(rows)} rows, not {table.rows}"]
    problems += [f"the note {note!r} is gone" for note in table.notes if note not in found["below"]]
    problems += [f"the title {title!r} is gone" for title in table.above if title not in found["above"]]
    for column in table.columns:
        at, told = columns[column.name]
        cells = [row[at] for row in rows]
        if column.values is None or told["type"] == "VARCHAR":
            written = [cell or None for cell in column.cells]
            problems += [] if cells == written else [f"{column.name}: {cells} is not {written}"]
        else:
            values = [None if value is None else float(value) for value in column.values]
            problems += [] if _are_near(cells, values) else [f"{column.name}: {cells} is not {values}"]
        if column.values is not None and column.decides:
            counts["decided"] += 1
            counts["decided numbers"] += told["type"] != "VARCHAR"
        elif column.values is not None:
            counts["open"] += 1
            counts["open numbers"] += told["type"] != "VARCHAR"
    return problems


def _read(table: MadeTable, folder: Path) -> JsonObject:
    folder.mkdir()
    source = folder / "source"
    source.write_text(table.content, encoding="utf-8", newline="")
    report = convert(str(source), "table.csv", str(folder))
    assert report["problem"] is None, table.content
    found: JsonObject = report["tables"][0]
    return found


def _are_near(cells: list[Decimal | float | None], values: list[float | None]) -> bool:
    if len(cells) != len(values):
        return False
    pairs = list(zip(cells, values, strict=True))
    return all((cell is None) == (value is None) for cell, value in pairs) and all(
        abs(float(cell) - value) <= 1e-9 * max(1.0, abs(value))
        for cell, value in pairs
        if cell is not None and value is not None
    )
