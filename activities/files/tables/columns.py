"""One reading for each text column, decided by its own values, then by the other columns.

The engine counts the shapes of a column's values, which are few; the rules look at these. A column
whose values fit only different readings, or whose reading is uncertain, stays text with a note.
"""

from typing import Any

import duckdb

from activities.files.descriptions import ColumnDescription, TableDescription
from activities.files.tables.column_dates import given_dates, read_dates
from activities.files.tables.column_numbers import (
    UNDECIDED,
    as_number,
    given_numbers,
    own_reading,
    reason_for_text,
    words_reading,
)
from activities.files.tables.column_reading import (
    FIRST,
    FIRST_ROWS,
    MOSTLY,
    WRITTEN_CHARS,
    ColumnReading,
)
from activities.files.tables.number_shapes import TYPED
from activities.files.tables.profiles import Profile, Rows, most_frequent, profile_column
from activities.files.values import literal, quoted, value_text
from temporal_supervisor.supervision.base.json_object import JsonObject


def read_columns(
    database: duckdb.DuckDBPyConnection,
    names: list[str],
    *,
    semicolons: bool = False,
    has_typed: bool = False,
    texts_are_numbers: bool = True,
    described: TableDescription | None = None,
) -> dict[str, ColumnReading]:
    """Returns the reading of each text column in the table `texts`.

    If `semicolons` separate the file's fields, a lone comma is a decimal one. With `has_typed` some
    cells are numbers already. Without `texts_are_numbers` a text is never a number, because its
    source has numbers of its own.
    """

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return database.execute(sql).fetchall()

    ((count,),) = rows("SELECT count(*) FROM texts")
    reader = _Reader(
        rows,
        described or TableDescription(),
        is_small=count <= FIRST,
        texts_are_numbers=texts_are_numbers,
    )
    readings: dict[str, ColumnReading] = {}
    left_open: dict[str, Profile] = {}
    for name in names:
        reading, profile = reader.read_column(name)
        readings[name] = reading or ColumnReading()
        if reading is None and profile is not None:
            left_open[name] = profile
    _decide_open(readings, left_open, semicolons=semicolons)
    for name in names:
        reading = readings[name]
        unit = reader.description_of(name).unit or reading.unit
        is_typed_text = has_typed and not reading.sql
        readings[name] = reading._replace(unit=unit, has_typed=is_typed_text)
    return readings


class _Reader:
    """Reads the columns of one table, by their values and a person's description."""

    def __init__(
        self,
        rows: Rows,
        described: TableDescription,
        *,
        is_small: bool,
        texts_are_numbers: bool,
    ) -> None:
        self._rows = rows
        self._described = described
        self._is_small = is_small
        self._texts_are_numbers = texts_are_numbers

    def description_of(self, name: str) -> ColumnDescription:
        """Returns a person's description of a column; an empty one without any."""
        return self._described.columns.get(name, ColumnDescription())

    def read_column(self, name: str) -> tuple[ColumnReading | None, Profile | None]:
        """Returns the reading of a column, and its cells.

        The reading is None if the other columns have to decide it.
        """
        about = self.description_of(name)
        missing = [*self._described.missing, *about.missing]
        if about.type == "text":
            return ColumnReading(why="its description says so"), None

        source = "texts" if self._is_small else FIRST_ROWS
        profile = profile_column(self._rows, name, missing, source)
        if about.type is None and profile.numeric_count < MOSTLY * profile.filled_count:
            reading = read_dates(self._rows, name, profile) or reason_for_text(name, profile)
            return reading or words_reading(profile), profile
        if not self._is_small:
            profile = profile_column(self._rows, name, missing)
        mark = about.decimal or self._described.decimal or ""
        if about.type == "date":
            return given_dates(self._rows, name, profile), profile
        if about.type or mark:
            return given_numbers(name, profile, about.type or "", mark), profile
        if not self._texts_are_numbers and not all(cells.is_typed for cells in profile.numbers):
            written = most_frequent(profile.numbers).written
            return ColumnReading(why="its source holds texts", written=written), profile
        reading = own_reading(name, profile)
        if reading is not None and not reading.kind and not reading.notes:
            reading = read_dates(self._rows, name, profile) or reading
        return reading, profile


def _decide_open(
    readings: dict[str, ColumnReading],
    left_open: dict[str, Profile],
    *,
    semicolons: bool,
) -> None:
    """Decides the columns that are still open, by the other columns, then by the delimiter."""
    commas = [name for name, reading in readings.items() if reading.mark == ","]
    dots = [name for name, reading in readings.items() if reading.mark == "."]
    doubt = "" if commas or dots else _doubt_about_dots(left_open, semicolons=semicolons)
    for name, profile in left_open.items():
        proving = [cells for cells in profile.numbers if cells.number and cells.number.proves]
        cells = most_frequent(proving or profile.open_cells)
        dotted = profile.open_dots
        if doubt and dotted and not proving:
            why = f"the dot in {dotted[0].written!r} may group thousands, as {doubt}"
            notes = (f"{name}: {why}, or be a decimal mark: nobody can tell, so it stays text",)
            readings[name] = ColumnReading(why=why, written=dotted[0].written, notes=notes)
            continue

        if dots and (commas or proving):
            other = f"{cells.written!r} may be a list"
            if commas:
                other = f"column {commas[0]!r} has decimal commas"
            why = f"column {dots[0]!r} has decimal dots, {other}"
            unclear = f"nobody can tell what {cells.written!r} is ({why})"
            notes = (f"{name}: {unclear}, so it stays text",)
            readings[name] = ColumnReading(why=why, written=cells.written, notes=notes)
            continue

        mark, why = ".", UNDECIDED
        if commas:
            mark, why = ",", f"column {commas[0]!r} has decimal commas"
        elif dots:
            why = f"column {dots[0]!r} has decimal dots"
        elif proving:
            mark, why = ",", f"{cells.written!r} fits no other reading"
        elif semicolons:
            mark, why = ",", "semicolons separate the file's fields"
        readings[name] = as_number(name, profile, mark, why, cells)


def _doubt_about_dots(left_open: dict[str, Profile], *, semicolons: bool) -> str:
    """Returns the reason why a file's dots may group thousands; empty without one.

    This is for a file in which no column shows its decimal mark.
    """
    if semicolons:
        return "semicolons separate the fields"
    for name, profile in left_open.items():
        small = profile.below_thousand
        if small and profile.open_dots:
            return f"{most_frequent(small).written!r} in column {name!r} has none"
    return ""


def reading_json(
    database: duckdb.DuckDBPyConnection,
    name: str,
    reading: ColumnReading,
) -> JsonObject:
    """Returns a reading for people: a cell as written, its value, the decision and the reason."""
    written = reading.written
    value = written
    if reading.sql and written:
        column = f"(SELECT {literal(written)} AS {quoted(name)})"
        found = database.execute(f"SELECT {reading.sql} FROM {column}").fetchone()
        value = value_text(found[0]) if found else ""
    return {
        "written": written.removeprefix(TYPED)[:WRITTEN_CHARS],
        "value": value.removeprefix(TYPED)[:WRITTEN_CHARS],
        "decision": reading.decision,
        "why": reading.why,
        "unit": reading.unit,
    }
