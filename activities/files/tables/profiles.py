"""Profiles of columns: their cells counted by shape, and the SQL that converts them to numbers."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from activities.files.tables.number_shapes import (
    BLANKS,
    DOTTED_UNITS,
    MINUS,
    SHAPE_CHARS,
    TYPED,
    NumberShape,
    is_missing,
    number_shape,
)
from activities.files.values import literal, quoted

_SHAPES = 20_000  # of one column; one with more holds words


class Cells(NamedTuple):
    """The cells of a column with one shape: their number, and one of them as written."""

    shape: str
    zero: bool
    times: int
    written: str
    number: NumberShape | None

    @property
    def is_typed(self) -> bool:
        """True for numbers of a typed source."""
        return self.shape.startswith(TYPED)

    @property
    def is_below_thousand(self) -> bool:
        """True for whole numbers of up to three digits."""
        reading = self.number and self.number.dot
        return bool(reading and not reading.fraction and not reading.group and reading.whole <= 3)


class Profile(NamedTuple):
    """The cells of a column: numbers by shape, marks of missing values, and all others."""

    numbers: list[Cells]
    missing: list[str]
    words: list[Cells]

    @property
    def filled_count(self) -> int:
        """The number of cells that are not missing."""
        return sum(cells.times for cells in (*self.numbers, *self.words))

    @property
    def numeric_count(self) -> int:
        """The number of cells that may be numbers."""
        return sum(cells.times for cells in self.numbers)

    @property
    def open_cells(self) -> list[Cells]:
        """The cells that are different numbers under a dot and under a comma."""
        return [cells for cells in self.numbers if cells.number and cells.number.is_open]

    @property
    def open_dots(self) -> list[Cells]:
        """The cells such as 1.527, whose dot is a decimal mark or groups thousands."""
        read = [(cells, cells.number.dot) for cells in self.open_cells if cells.number]
        return [cells for cells, dot in read if dot and dot.fraction]

    @property
    def below_thousand(self) -> list[Cells]:
        """The cells that are not open, if all of them are whole numbers below 1,000; else none.

        1.527 next to 640 is how people write who group with dots. People who round to three digits
        hardly have a whole number, and without zeros at the end some numbers have one or two
        decimals, which decide the column.
        """
        rest = [cells for cells in self.numbers if cells.number and not cells.number.is_open]
        return rest if all(cells.is_below_thousand for cells in rest) else []


Rows = Callable[[str], list[tuple[Any, ...]]]


def trimmed_sql(name: str) -> str:
    """Returns the SQL of a column's text without the blanks around it."""
    return f"trim({quoted(name)}, {literal(BLANKS)})"


def untyped(name: str) -> str:
    """Returns the SQL of a column's text without the mark of typed numbers."""
    text = quoted(name)
    return f"CASE WHEN starts_with({text}, chr(2)) THEN substr({text}, 2) ELSE {text} END"


def profile_column(rows: Rows, name: str, missing: list[str], source: str = "texts") -> Profile:
    """Returns the profile of a column.

    `missing` are described marks of missing values, in addition to the usual ones.
    """
    text = trimmed_sql(name)
    digits = f"translate({text}, '012345678', '999999999')"
    shape = f"CASE WHEN strlen({text}) > {4 * SHAPE_CHARS} THEN 'words' ELSE {digits} END"
    zero = f"regexp_matches({text}, '^[^0-9]*0')"
    named = sorted({value.strip(BLANKS).lower() for value in missing})
    given = f" AND lower({text}) NOT IN ({sql_list(named)})" if named else ""
    found = rows(
        f"SELECT {shape} AS shape, {zero} AS zero, count(*), any_value({text}) FROM {source} "
        f"WHERE {quoted(name)} IS NOT NULL{given} GROUP BY shape, zero LIMIT {_SHAPES}"
    )
    profile = Profile([], [*named], [])
    for shape, zero, count, written in found:
        if not shape.startswith(TYPED) and is_missing(written):
            profile.missing.append(written.lower())
            continue
        number = number_shape(shape, zero=zero)
        cells = Cells(shape, zero, count, written, number)
        (profile.words if number is None else profile.numbers).append(cells)
    return profile


def number_sql(text: str, profile: Profile, mark: str, kind: str) -> str | None:
    """Returns the SQL that converts a profile's texts to numbers; None if no rule fits all."""
    plain = [cells for cells in profile.numbers if not cells.is_typed]
    chars = {char for cells in plain for char in cells.shape} - {"9"}
    shapes = [(cells.shape, cells.number) for cells in plain if cells.number]
    scientific = any(number.scientific for _, number in shapes)
    others = [shape for shape, number in shapes if not number.scientific]
    if scientific and any("e" in shape.lower() for shape in others):
        return None

    value = text
    for unit in DOTTED_UNITS:
        if any(unit in shape for shape, _ in shapes):
            value = f"replace({value}, {literal(unit)}, '')"
    if any(number.footnote == "bracket" for _, number in shapes):
        value = f"regexp_replace({value}, '\\s*\\[.*$', '')"
    if any(number.trailing for _, number in shapes):
        last = f"right({value}, 1) IN ({sql_list(MINUS)})"
        value = f"CASE WHEN {last} THEN '-' || left({value}, -1) ELSE {value} END"
    kept = comma = ""
    if kind == "DOUBLE":
        kept = "." if mark == "." else ""
        comma = "," if mark == "," else ""
    if scientific:
        kept += "eE+"
    value = _bare(value, chars, kept, comma)
    if len(plain) < len(profile.numbers):
        value = f"CASE WHEN starts_with({text}, chr(2)) THEN substr({text}, 2) ELSE {value} END"
    if profile.missing:
        missing = sorted({*profile.missing})
        compared = f"lower({text})" if any(char.isalpha() for char in "".join(missing)) else text
        value = f"CASE WHEN {compared} IN ({sql_list(missing)}) THEN NULL ELSE {value} END"
    return f"CAST({value} AS {kind})"


def _bare(value: str, chars: set[str], kept: str, comma: str) -> str:
    """Returns the SQL of a text reduced to its digits, a minus, a decimal dot, and `kept` signs."""
    minus = "".join(sorted(chars & {"(", *MINUS} - {"-"}))
    source = minus + (comma if comma in chars else "")
    target = "-" * len(minus) + ("." if source != minus else "")
    source += "".join(sorted(chars - {"-", *source, *kept}))
    return f"translate({value}, {literal(source)}, {literal(target)})" if source else value


def sql_list(texts: Iterable[str]) -> str:
    """Returns some texts as an SQL list: `'a', 'b'`."""
    return ", ".join(map(literal, texts))


def most_frequent(cells: list[Cells]) -> Cells:
    """Returns the most frequent of some cells."""
    return max(cells, key=lambda one: one.times, default=Cells("", False, 0, "", None))
