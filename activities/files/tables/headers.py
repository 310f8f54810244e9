"""The place of a table's header, decided by the first rows: notes are above it, data below.

A header's cells are no numbers where the cells below are, except years and running numbers.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from activities.files.tables.number_shapes import BLANKS, TYPED, is_missing, number_shape, shape_of
from activities.files.values import numbered

_ROWS = 3  # of a header
_NAME_CHARS = 60  # of a cell of the header
_JOINED_CHARS = 150  # of all cells above a column
_ABOVE = 12  # rows above the header that are kept
_ABOVE_CHARS = 300  # of each
_LOWER = 0.6  # of the first rows: data, whatever stands above
_MARKED = re.compile(r"[0-9][.,][0-9]|[%$€£]")
_DAY = re.compile(r"[0-9]{1,4}[./-] ?[0-9]{1,2}[./-] ?[0-9]{1,4}")
_YEAR = re.compile(r"(?:18|19|20)\d\d")


class Row(NamedTuple):
    """A row of a file: its number from 1, the number of the line in which it ends, and its cells.

    A cell may hold line ends; a row without cells is an empty line.
    """

    number: int
    line: int
    cells: list[str]


class Header(NamedTuple):
    """The header: the number of rows that are no data, the columns' names, the texts above.

    `lines` are the numbers of the header's lines, as a person counts them.
    """

    skip: int
    names: list[str]
    above: list[str]
    rows: list[list[str]]
    lines: list[int]


def find_header(rows: Sequence[Row], width: int, given: Sequence[int] | None = None) -> Header:
    """Returns the header among the first rows of a table with so many columns.

    `given`: a person's numbers of lines.
    """
    if given is not None:
        return _given_header(rows, width, given)
    filled = [row for row in rows if any(cell.strip(BLANKS) for cell in row.cells)]
    table = _Table(filled, width)
    above, header = list[Row](), list[Row]()
    for at, row in enumerate(filled):
        if table.is_data(row.cells):
            break
        after = filled[at + 1] if at + 1 < len(filled) else None
        if not header:
            if table.is_title(row, after):
                above.append(row)
            else:
                header.append(row)
        elif table.is_unit(row.cells, header):
            above.append(row)
        elif table.is_centred(header) and table.continues(row.cells, header):
            above += header  # nobody can tell which columns it stands over
            header = [row]
        elif len(header) < _ROWS and table.continues(row.cells, header):
            header.append(row)
        else:
            break
    if not header and above and len(above) == len(filled):
        header.append(above.pop())  # a file of titles alone
    skip = max((row.number for row in (*above, *header)), default=0)
    lines = [row.line for row in header]
    cells = [row.cells for row in header]
    return Header(skip, table.names(cells), _texts(above), cells, lines)


def _given_header(rows: Sequence[Row], width: int, given: Sequence[int]) -> Header:
    starts = [0, *(row.line for row in rows)]
    header = [row for start, row in zip(starts, rows, strict=False) if any(start < line <= row.line for line in given)]
    first = min((row.number for row in header), default=0)
    above = [row for row in rows if row.number < first and any(row.cells)]
    table = _Table([row for row in rows if any(row.cells)], width)
    cells = [row.cells for row in header]
    skip = max((row.number for row in header), default=0)
    return Header(skip, table.names(cells), _texts(above), cells, [row.line for row in header])


def _texts(rows: Sequence[Row]) -> list[str]:
    texts = [" / ".join(filter(None, (_plain(cell) for cell in row.cells))) for row in rows]
    return [text[:_ABOVE_CHARS] for text in texts if text][:_ABOVE]


def _plain(cell: str) -> str:
    return " ".join(cell.removeprefix(TYPED).split())


class _Table:
    """The first rows of a table, and which of its columns hold numbers, or years, below."""

    def __init__(self, rows: Sequence[Row], width: int) -> None:
        self.width = width
        self.rows = rows
        distinct = _distinct(rows)
        lower = distinct[1:][-max(1, round(len(distinct) * _LOWER)) :] or rows[1:]
        self.numbers, self.years, self.filled = set[int](), set[int](), set[int]()
        for column in range(width):
            of_rows = [_kind(row.cells, column) for row in lower]
            kinds = [kind for kind in of_rows if kind not in ("", "missing")]
            years = kinds.count("year")
            if kinds:
                self.filled.add(column)
            if kinds and 2 * (kinds.count("number") + years) >= len(kinds):
                self.numbers.add(column)
            if kinds and 2 * years > len(kinds):
                self.years.add(column)

    def is_data(self, cells: Sequence[str]) -> bool:
        """True if a cell is a number in a column of numbers, or has a number's marks wherever it stands.

        Running numbers beside a name are a header's.
        """
        if any(_kind(cells, column) == "number" and _MARKED.search(cells[column]) for column in range(len(cells))):
            return True
        kinds = {column: _kind(cells, column) for column in self.numbers}
        data = [
            column for column, kind in kinds.items() if kind == "number" or (kind == "year" and column in self.years)
        ]
        named = [column for column, kind in kinds.items() if kind == "text"]
        return bool(data) and not (named and _is_running([_plain(cells[column]) for column in sorted(data)]))

    def is_title(self, row: Row, after: Row | None) -> bool:
        """True for a row above the header: a text at its start, or few where the next row is no part."""
        if self.width == 1:
            return False
        cells = row.cells
        filled = [column for column in range(len(cells)) if cells[column].strip(BLANKS)]
        if len(cells) < self.width - (self.width > 2):  # one may lack
            return True
        if filled == [0] or self.is_dated(row, after):
            return True
        if len(filled) * 2 >= self.width or 0 not in filled or after is None:
            return False
        if self.is_data(after.cells):
            return after.number > row.number + 1
        return not self.continues(after.cells, [row])

    def is_dated(self, row: Row, after: Row | None) -> bool:
        """True for a label and its day, `As of, 2025-01-01`, above a row that names all columns."""
        if after is None or self.width_of(row.cells) != [0, 1]:
            return False
        if not _DAY.match(_plain(row.cells[1])):
            return False
        if self.width == 2 and after.number == row.number + 1:
            return False  # the day may be the name of its column
        named = {_kind(after.cells, column) for column in range(self.width)} <= {"text", "year"}
        return named and bool(self.numbers) and not self.is_data(after.cells)

    def is_unit(self, cells: Sequence[str], header: Sequence[Row]) -> bool:
        """True for a lone text such as (in millions) below a header: it holds for the whole table."""
        filled = [column for column in range(len(cells)) if cells[column].strip(BLANKS)]
        if len(filled) != 1 or filled == [0] or self.width < 3:
            return False
        named = sum(bool(cell.strip(BLANKS)) for cell in header[-1].cells)
        text = _plain(cells[filled[0]])
        return named > 1 and text.startswith("(") and text.endswith(")")

    def is_centred(self, header: Sequence[Row]) -> bool:
        """True for a lone text in the middle of columns of numbers: it may stand over all, or those behind it."""
        filled = self.width_of(header[-1].cells)
        return len(header) == 1 and len(filled) == 1 and filled[0] > 1 and {*range(1, filled[0])} <= self.numbers

    def continues(self, cells: Sequence[str], header: Sequence[Row]) -> bool:
        """True if a row belongs to the header above it: it names columns of numbers that this leaves open."""
        above = header[-1].cells
        if any(_kind(cells, column) == "number" for column in range(len(cells))):
            return False
        texts = [column for column in self.numbers if _kind(cells, column) in ("text", "year")]
        blank = [column for column in range(self.width) if _kind(cells, column) == ""]
        if not texts or len(blank) == self.width - 1 and 0 not in blank:
            return False
        if 0 in blank:
            return len(self.width_of(cells)) > 1 or len(self.width_of(above)) <= 1
        unnamed = [column for column in texts if _kind(above, column) == ""]
        if unnamed:
            return True
        whole = self.numbers - {0} <= {column for column in self.numbers if _kind(cells, column) in ("text", "year")}
        return whole and _kind(above, 0) == "" and 0 not in self.numbers

    def width_of(self, cells: Sequence[str]) -> list[int]:
        """Returns the columns that a row fills."""
        return [column for column in range(len(cells)) if cells[column].strip(BLANKS)]

    def names(self, rows: list[list[str]]) -> list[str]:
        """Returns a name for each column: the texts above it, joined with a blank."""
        width = max([self.width, *(len(row) for row in rows)]) if rows else self.width
        shifted = [[*row] for row in rows]
        if (
            rows
            and len(rows[-1]) == self.width - 1
            and self.width > 2
            and self.width - 1 in self.filled
            and 0 in self.filled
        ):
            # The first column has the names of rows, as R writes it.
            shifted = [["", *row] for row in rows]
        padded = [[_plain(cell)[:_NAME_CHARS] for cell in row] + [""] * (width - len(row)) for row in shifted]
        for upper, lower in zip(padded, padded[1:], strict=False):
            _spread(upper, lower)
        joined = [" ".join(dict.fromkeys(filter(None, parts))) for parts in zip(*padded, strict=True)] or [""] * width
        return numbered([name[:_JOINED_CHARS].strip() or f"column_{at + 1}" for at, name in enumerate(joined)])


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows without those that stand above already: a header that repeats is no data below itself."""
    first = dict[tuple[str, ...], Row]()
    for row in rows:
        first.setdefault(tuple(row.cells), row)
    return list(first.values())


def _spread(upper: list[str], lower: list[str]) -> None:
    """Fills the cells that a merged one left empty: where few stand above many, above years, and above equal names."""
    filled = sum(bool(cell) for cell in upper[1:])
    names = [cell for cell in lower[1:] if cell]
    years = bool(names) and all(_YEAR.fullmatch(name) for name in names)
    few = 2 * filled <= max(len(names), 1) + (filled == 1)
    if not filled or not (few or years or len(set(names)) < len(names)):
        return
    last = ""
    for column in range(1, len(upper)):
        last = upper[column] or last
        if lower[column]:
            upper[column] = last


def _kind(cells: Sequence[str], column: int) -> str:
    """Returns the kind of a cell: "number", "year", "missing", "text", or empty."""
    cell = cells[column] if column < len(cells) else ""
    text = cell.strip(BLANKS)
    if not text:
        return ""
    if _YEAR.fullmatch(text.removeprefix(TYPED)):
        return "year"
    if text.startswith(TYPED):
        return "number"
    if is_missing(text):
        return "missing"
    shape, zero = shape_of(text)
    return "number" if number_shape(shape, zero=zero) or set(shape) == {"9"} else "text"


def _is_running(cells: list[str]) -> bool:
    """True for numbers that go up by one: 1, 2, 3."""
    if len(cells) < 2 or not all(cell.isdecimal() and len(cell) < 9 for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return all(after - before == 1 for before, after in zip(numbers, numbers[1:], strict=False))
