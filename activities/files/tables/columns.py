"""One reading for each column of texts: decided by its own values, then by the other columns of its file.

The engine counts the shapes of a column, of which there are few; the rules look at these. What fits
only different readings, and what nobody could tell, stays text with a note.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb

from activities.files.descriptions import ColumnDescription, TableDescription
from activities.files.tables.dates import DateReading, date_readings, orders
from activities.files.tables.number_shapes import TYPED, Digits, NumberShape, is_identifier
from activities.files.tables.profiles import Cells, Profile, Rows, listed, most, number_sql, profiled, text_of
from activities.files.values import literal, quoted, shown

Json = dict[str, Any]

MOSTLY = 0.8  # of a column's values: with fewer numbers or dates among them it is meant as text
# Rows: a column that is mostly something else in them is not counted whole, which takes time.
_FIRST = 2000
_FIRST_ROWS = f"(FROM texts LIMIT {_FIRST})"
_WRITTEN_CHARS = 60
_DATE_CHARS = 40
_GROUPS = {",": "commas group thousands", ".": "dots group thousands", " ": "blanks group thousands",
           "'": "apostrophes group thousands"}  # fmt: skip
COMMAS = "decimal commas are read as numbers"


class ColumnReading(NamedTuple):
    """The reading of a column: its type and the SQL of a value, both empty for text, with notes."""

    kind: str = ""
    sql: str = ""
    decision: str = "text"
    why: str = ""
    unit: str = ""
    written: str = ""
    notes: tuple[str, ...] = ()
    mark: str = ""
    """The decimal mark that the column's own values show."""
    missed: int = 0
    """Values that do not fit the type that a person gave."""
    has_typed: bool = False
    """True if some values are numbers of a typed source, with its mark."""


def read_columns(
    database: duckdb.DuckDBPyConnection,
    names: list[str],
    *,
    semicolons: bool = False,
    has_typed: bool = False,
    texts_are_numbers: bool = True,
    described: TableDescription | None = None,
) -> dict[str, ColumnReading]:
    """Returns the reading of each column of texts in the table `texts`.

    `semicolons` separate the file's fields: then a lone comma is a decimal one. `has_typed`: some
    cells are numbers already. Without `texts_are_numbers`, a text is never a number: its source has
    numbers of its own.
    """

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return database.execute(sql).fetchall()

    ((count,),) = rows("SELECT count(*) FROM texts")
    reader = _Reader(
        rows, described or TableDescription(), is_small=count <= _FIRST, texts_are_numbers=texts_are_numbers
    )
    readings, left_open = dict[str, ColumnReading](), dict[str, Profile]()
    for name in names:
        reading, profile = reader.read(name)
        readings[name] = reading or ColumnReading()
        if reading is None and profile is not None:
            left_open[name] = profile
    _decide_open(readings, left_open, semicolons=semicolons)
    for name in names:
        unit = reader.about(name).unit or readings[name].unit
        readings[name] = readings[name]._replace(unit=unit, has_typed=has_typed and not readings[name].sql)
    return readings


class _Reader:
    """Reads the columns of one table, each by its own values and by what a person says of it."""

    def __init__(self, rows: Rows, described: TableDescription, *, is_small: bool, texts_are_numbers: bool) -> None:
        self._rows, self._described = rows, described
        self._is_small, self._texts_are_numbers = is_small, texts_are_numbers

    def about(self, name: str) -> ColumnDescription:
        """Returns a person's description of a column."""
        return self._described.columns.get(name, ColumnDescription())

    def read(self, name: str) -> tuple[ColumnReading | None, Profile | None]:
        """Returns the reading of a column, None if the other columns have to decide it, and what its cells are."""
        about = self.about(name)
        missing = [*self._described.missing, *about.missing]
        if about.type == "text":
            return ColumnReading(why="its description says so"), None

        profile = profiled(self._rows, name, missing, "texts" if self._is_small else _FIRST_ROWS)
        if about.type is None and profile.numeric < MOSTLY * profile.filled:
            reading = _dates(self._rows, name, profile) or _reason_for_text(name, profile)
            return reading or _words(profile), profile
        if not self._is_small:
            profile = profiled(self._rows, name, missing)
        mark = about.decimal or self._described.decimal or ""
        if about.type == "date":
            return _given_dates(self._rows, name, profile), profile
        if about.type or mark:
            return _given_numbers(name, profile, about.type or "", mark), profile
        if not self._texts_are_numbers and any(not cells.is_typed for cells in profile.numbers):
            return ColumnReading(why="its source holds texts", written=most(profile.numbers).written), profile
        reading = own_reading(name, profile)
        if reading is not None and not reading.kind and not reading.notes:
            reading = _dates(self._rows, name, profile) or reading
        return reading, profile


def own_reading(name: str, profile: Profile) -> ColumnReading | None:
    """Returns the reading of a column whose own values decide it; None if the file has to."""
    text = _reason_for_text(name, profile)
    if text:
        return text
    dots = [cells for cells in profile.numbers if cells.number and cells.number.proves == "."]
    commas = [cells for cells in profile.numbers if cells.number and cells.number.proves == ","]
    if dots and commas:
        one, other = repr(most(dots).written), repr(most(commas).written)
        why = f"{one} and {other} fit only different readings"
        return ColumnReading(why=why, written=most(commas).written, notes=(f"{name}: {why}, so it stays text",))
    if commas and _may_be_lists(commas, profile):
        return None
    if dots or commas:
        proof = most(dots or commas)
        mark = "." if dots else ","
        count = sum(cells.times for cells in dots or commas)
        return _as_number(
            name,
            profile,
            mark,
            f"{_values(count)} such as {proof.written!r} fit{'s' * (count == 1)} no other reading",
            proof,
            own=True,
        )
    if profile.open:
        return None
    return _as_number(name, profile, ".", "its values have one reading", None)


def _may_be_lists(commas: list[Cells], profile: Profile) -> bool:
    """True if few values have a comma, none with more than two digits behind it: 10,11 may be two numbers."""
    short = all(cells.number and cells.number.comma and cells.number.comma.fraction <= 2 for cells in commas)
    grouped = any(cells.number and cells.number.comma and cells.number.comma.group for cells in profile.numbers)
    return short and not grouped and sum(cells.times for cells in commas) * 2 < profile.numeric


def _decide_open(readings: dict[str, ColumnReading], left_open: dict[str, Profile], *, semicolons: bool) -> None:
    """Decides the columns that their own values leave open by the other columns, then by the delimiter."""
    commas = [name for name, reading in readings.items() if reading.mark == ","]
    dots = [name for name, reading in readings.items() if reading.mark == "."]
    doubt = "" if commas or dots else _doubt_about_dots(left_open, semicolons=semicolons)
    for name, profile in left_open.items():
        proving = [cells for cells in profile.numbers if cells.number and cells.number.proves]
        cells = most(proving or profile.open)
        dotted = profile.open_dots
        if doubt and dotted and not proving:
            why = f"the dot in {dotted[0].written!r} may group thousands, as {doubt}"
            notes = (f"{name}: {why}, or be a decimal mark: nobody can tell, so it stays text",)
            readings[name] = ColumnReading(why=why, written=dotted[0].written, notes=notes)
            continue
        if dots and (commas or proving):
            other = f"column {commas[0]!r} has decimal commas" if commas else f"{cells.written!r} may be a list"
            why = f"column {dots[0]!r} has decimal dots, {other}"
            notes = (f"{name}: nobody can tell what {cells.written!r} is ({why}), so it stays text",)
            readings[name] = ColumnReading(why=why, written=cells.written, notes=notes)
            continue
        mark, why = ".", "nothing in the file decides it"
        if commas:
            mark, why = ",", f"column {commas[0]!r} has decimal commas"
        elif dots:
            why = f"column {dots[0]!r} has decimal dots"
        elif proving:
            mark, why = ",", f"{cells.written!r} fits no other reading"
        elif semicolons:
            mark, why = ",", "semicolons separate the file's fields"
        readings[name] = _as_number(name, profile, mark, why, cells)


def _doubt_about_dots(left_open: dict[str, Profile], *, semicolons: bool) -> str:
    """Returns the reason why a file's dots may group thousands; else empty.

    No column shows its decimal mark.
    """
    if semicolons:
        return "semicolons separate the fields"
    for name, profile in left_open.items():
        small = profile.below_thousand
        if small and profile.open_dots:
            return f"{most(small).written!r} in column {name!r} has none"
    return ""


def _reason_for_text(name: str, profile: Profile) -> ColumnReading | None:
    """Returns the reading as text of a column whose values are no numbers, or not of one kind.

    Else None.
    """
    if not profile.numeric:
        return _words(profile)
    if any(is_identifier(cells.shape, zero=cells.zero) for cells in profile.words):
        one = next(cells for cells in profile.words if is_identifier(cells.shape, zero=cells.zero))
        return ColumnReading(why=f"identifiers such as {one.written!r} are no numbers", written=one.written)
    if profile.words:
        few = sum(cells.times for cells in profile.words)
        one = most(profile.words)
        why = f"{few} of {profile.filled} values are no numbers"
        notes = (f"{name}: {why}, so it stays text",) if profile.numeric >= MOSTLY * profile.filled else ()
        return ColumnReading(why=f"{why}, such as {one.written[:_WRITTEN_CHARS]!r}", written=one.written, notes=notes)

    problem, written = _mixed(profile)
    if problem:
        return ColumnReading(why=problem, written=written, notes=(f"{name}: {problem}, so it stays text",))
    return None


def _mixed(profile: Profile) -> tuple[str, str]:
    """Returns the reason why numbers cannot be added up, and one of them; else empty."""
    numbers = [(cells, cells.number) for cells in profile.numbers if cells.number]
    currencies = _by(((cells, number.currency) for cells, number in numbers))
    if len(currencies) > 1:
        one, other, *_ = currencies.values()
        return f"{one.written!r} and {other.written!r} are of different currencies", one.written
    shares = _by(((cells, number.share) for cells, number in numbers))
    if len(shares) > 1:
        one, other, *_ = shares.values()
        return f"{one.written!r} and {other.written!r} have different units", one.written
    scaled = _by((cells, number.scale or "none") for cells, number in numbers)
    if len(scaled) > 1:
        one, other, *_ = scaled.values()
        return f"{one.written!r} and {other.written!r} have different units", one.written
    letters = sum(cells.times for cells, number in numbers if number.footnote == "letter")
    if letters * 2 > profile.numeric:
        one = next(cells for cells, number in numbers if number.footnote == "letter")
        return f"nobody can tell what the letters behind values such as {one.written!r} mean", one.written
    if all(number.bracketed for _, number in numbers):
        plain_numbers = [cells for cells, number in numbers if _is_plain(number)]
        if len(plain_numbers) == len(numbers):
            one = most(plain_numbers)
            return f"numbers in brackets such as {one.written!r} alone may be negative or notes", one.written
    return "", ""


def _is_plain(number: NumberShape) -> bool:
    reading = number.dot or number.comma or Digits(0, 0)
    return not (reading.fraction or reading.group or number.currency or number.share) and reading.whole <= 3


def _by(pairs: Iterator[tuple[Cells, str]] | Any) -> dict[str, Cells]:
    """Returns one of the cells of each unit that is named."""
    found: dict[str, Cells] = {}
    for cells, unit in pairs:
        if unit:
            found.setdefault(unit, cells)
    return found


def _as_number(
    name: str, profile: Profile, mark: str, why: str, proof: Cells | None, *, own: bool = False
) -> ColumnReading:
    """Returns the reading of a column of numbers under a decimal mark that fits all of them."""
    pairs = [(cells, number, reading) for cells, number, reading in _read(profile, mark)]
    whole = not any(reading.fraction or number.scientific for _, number, reading in pairs)
    decimals = any(
        reading.fraction and not number.scientific and not cells.is_typed for cells, number, reading in pairs
    )
    groups = sorted({reading.group for _, _, reading in pairs if reading.group})
    decided = [_GROUPS[group] for group in groups]
    if mark == "," and decimals:
        decided.insert(0, COMMAS)
    elif decimals:
        decided.append("dots are decimal marks")

    sql = number_sql(text_of(name), profile, mark, "BIGINT" if whole else "DOUBLE")
    if sql is None:
        why = "numbers with exponents stand beside numbers with letters"
        return ColumnReading(why=why, notes=(f"{name}: {why}, so it stays text",))
    unit, notes = _unit(profile)
    told = [one for one in decided if one != "dots are decimal marks"]
    if told and groups and why == "nothing in the file decides it":
        told[-1] += f" ({why})"
    several = sum(cells.times for cells, _, reading in pairs if reading.groups > 1)
    if several and own and mark == ".":
        why = f"{_values(several)} ha{'s' if several == 1 else 've'} several groups"
    typical = proof or _telling(profile)
    return ColumnReading(
        kind="BIGINT" if whole else "DOUBLE",
        sql=sql,
        decision=", ".join(decided) or ("whole numbers" if whole else "numbers"),
        why=why,
        unit=unit,
        written=typical.written,
        notes=tuple(f"{name}: {note}" for note in (*told, *notes)),
        mark=mark if own else "",
    )


def _read(profile: Profile, mark: str) -> Iterator[tuple[Cells, NumberShape, Digits]]:
    for cells in profile.numbers:
        reading = cells.number and (cells.number.dot if mark == "." else cells.number.comma)
        if cells.number and reading:
            yield cells, cells.number, reading


def _unit(profile: Profile) -> tuple[str, list[str]]:
    """Returns the unit that all values have, and notes on units, footnotes and brackets."""
    numbers = [(cells.times, cells, cells.number) for cells in profile.numbers if cells.number]
    notes = list[str]()
    units = dict[str, int]()
    for count, _, number in numbers:
        unit = " ".join(filter(None, (number.currency, number.scale))) or number.share
        units[unit] = units.get(unit, 0) + count
    named = [unit for unit in units if unit]
    unit = named[0] if len(units) == 1 and named else ""
    if unit:
        notes.append(f"the numbers are written with {unit}, the values are as written")
    elif named:
        parts = " and ".join(f"{units[one]:,} with {one}" for one in named)
        notes.append(f"of {_values(profile.numeric)} {parts}, the others without: no unit holds for all")
    footnotes = sum(count for count, _, number in numbers if number.footnote)
    if footnotes:
        one = most([cells for _, cells, number in numbers if number.footnote])
        notes.append(f"{_values(footnotes)} such as {one.written!r} had a footnote's mark, which is left out")
    brackets = sum(count for count, _, number in numbers if number.bracketed)
    if brackets:
        notes.append(f"numbers in brackets are negative ({_values(brackets)})")
    return unit, notes


def _words(profile: Profile) -> ColumnReading:
    if not profile.filled:
        return ColumnReading(why="it has no values")
    one = most([*profile.words, *profile.numbers])
    number = profile.numeric and f"{profile.filled - profile.numeric} of {profile.filled} values are no numbers"
    return ColumnReading(why=number or "its values are words", written=one.written)


def _dates(rows: Rows, name: str, profile: Profile) -> ColumnReading | None:
    """Returns the reading of a column of dates; None if it has none."""
    cells = [*profile.numbers, *profile.words]
    if sum(one.times for one in cells if _may_be_date(one.shape)) < MOSTLY * profile.filled or not profile.filled:
        return None
    text = text_of(name)
    filled = f"count(*) FILTER (lower({text}) NOT IN ({listed(sorted({*profile.missing, ''}))}))"
    readings = date_readings(text)
    ((first, *fits),) = rows(f"SELECT {filled}, {_fits(readings)} FROM {_FIRST_ROWS}")
    readings = [reading for reading, fit in zip(readings, fits, strict=True) if first and fit >= MOSTLY * first]
    if not readings:
        return None
    ((count, *fits),) = rows(f"SELECT {filled}, {_fits(readings)} FROM texts")
    fitting = [reading for reading, fit in zip(readings, fits, strict=True) if fit == count]
    one = most([*profile.words, *profile.numbers]).written
    if len(orders(fitting)) > 1:
        why = "the dates may be read day first or month first"
        return ColumnReading(why=why, written=one, notes=(f"{name}: {why}, so they stay text",))
    if fitting:
        return _as_dates(name, fitting[0], one)
    few = count - max(fits)
    if count - few >= MOSTLY * count:
        why = f"{few} of {count} values are no dates"
        return ColumnReading(why=why, written=one, notes=(f"{name}: {why}, so it stays text",))
    return None


def _may_be_date(shape: str) -> bool:
    return len(shape) <= _DATE_CHARS and shape.count("9") >= 3


def _fits(readings: list[DateReading]) -> str:
    return ", ".join(f"count({one.read})" for one in readings)


def _as_dates(name: str, reading: DateReading, written: str) -> ColumnReading:
    notes = (f"{name}: {reading.note}",) if reading.note else ()
    why = "no other order fits all values" if reading.note else "all values have the shape of a date"
    return ColumnReading(reading.kind, reading.read, reading.note or "dates", why, written=written, notes=notes)


def _given_dates(rows: Rows, name: str, profile: Profile) -> ColumnReading:
    """Returns the reading of a column that a person calls dates: the one that fits most values."""
    readings = date_readings(text_of(name))
    (fits,) = rows(f"SELECT {_fits(readings)} FROM texts")
    top = max(fits)
    best = [reading for reading, fit in zip(readings, fits, strict=True) if fit == top]
    if not top or len(orders(best)) > 1:
        why = "the dates may be read day first or month first" if top else "none of its values is a date"
        return ColumnReading(why=why, notes=(f"{name}: {why}, so it stays text against its description",))
    one = most([*profile.words, *profile.numbers]).written
    reading = _as_dates(name, best[0], one)
    return reading._replace(why="its description says so", missed=profile.filled - top)


def _given_numbers(name: str, profile: Profile, kind: str, mark: str) -> ColumnReading:
    """Returns the reading of a column that a person calls numbers, or whose decimal mark a person gave."""
    if not mark:
        own = own_reading(name, Profile(profile.numbers, profile.missing, []))
        mark = own.mark if own and own.mark else "."
    fitting = [cells for cells, _, _ in _read(profile, mark)]
    kept = Profile(fitting, profile.missing, [])
    missed = profile.filled - kept.numeric
    if not kept.numeric or (missed and not kind):
        few = f"{missed} of {profile.filled} values are no numbers with the decimal mark {mark!r}"
        return ColumnReading(why=few, notes=(f"{name}: {few}, so it stays text",))
    reading = _as_number(name, kept, mark, "its description says so", None)
    if kind == "number" and reading.kind:
        reading = reading._replace(kind="DOUBLE", sql=number_sql(text_of(name), kept, mark, "DOUBLE") or "")
    if missed:
        text = text_of(name)
        shape = f"translate({text}, '012345678', '999999999')"
        fits = f"{shape} IN ({', '.join(literal(cells.shape) for cells in fitting)})"
        reading = reading._replace(sql=f"CASE WHEN {fits} THEN {reading.sql} END", missed=missed)
    return reading


def _telling(profile: Profile) -> Cells:
    """Returns the cells that show most of a column's writing: those with the most signs."""
    return max(profile.numbers, key=lambda one: (sum(char not in "9." for char in one.shape), one.times))


def _values(count: int) -> str:
    return f"{count:,} value{'s' * (count != 1)}"


def reading_json(database: duckdb.DuckDBPyConnection, name: str, reading: ColumnReading) -> Json:
    """Returns a reading for people: a cell as written, its value, the decision and the reason."""
    written = reading.written
    value = written
    if reading.sql and written:
        column = f"(SELECT {literal(written)} AS {quoted(name)})"
        found = database.execute(f"SELECT {reading.sql} FROM {column}").fetchone()
        value = shown(found[0]) if found else ""
    return {
        "written": written.removeprefix(TYPED)[:_WRITTEN_CHARS],
        "value": value.removeprefix(TYPED)[:_WRITTEN_CHARS],
        "decision": reading.decision,
        "why": reading.why,
        "unit": reading.unit,
    }
