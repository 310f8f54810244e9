"""The header of a table, found in the first rows: notes are above it, data below.

Its cells are no numbers where the cells below are, except years and running numbers.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from activities.files.tables.number_shapes import BLANKS, TYPED, is_missing, number_shape, shape_of
from activities.files.values import numbered_columns

_ROWS = 3  # of a header
_NAME_CHARS = 60  # of a cell of the header
_JOINED_CHARS = 150  # of all cells above a column
_ABOVE = 12  # rows above the header that are kept
_ABOVE_CHARS = 300  # of each
_LOWER = 0.6  # of the first rows: data, whatever stands above
# "1.5", "12%", "$"; not "12".
_MARKED = re.compile(r"[0-9][.,][0-9]|[%$€£]")
# "2004-05-02", "2.5.2004"; not "2004".
_DAY = re.compile(r"[0-9]{1,4}[./-] ?[0-9]{1,2}[./-] ?[0-9]{1,4}")
_YEAR = re.compile(r"(?:18|19|20)\d\d")


class Row(NamedTuple):
    """A row of a file: its number from 1, the number of its last line, and its cells.

    A cell may contain line ends; a row without cells is an empty line.
    """

    number: int
    line: int
    cells: list[str]


class Header(NamedTuple):
    """The header: the number of rows that are no data, the columns' names, the texts above.

    `lines` are the line numbers of the header, as a person counts them.
    """

    skip: int
    names: list[str]
    above: list[str]
    rows: list[list[str]]
    lines: list[int]


def find_header(rows: Sequence[Row], width: int, given: Sequence[int] | None = None) -> Header:
    """Returns the header in the first rows of a table with `width` columns.

    `given` are the line numbers that a person has described.
    """
    if given is not None:
        return _given_header(rows, width, given)
    filled = [row for row in rows if _filled_columns(row.cells)]
    table = _Table(filled, width)
    above: list[Row] = []
    header: list[Row] = []
    for row, after in zip(filled, [*filled[1:], None], strict=True):
        if table.is_data(row.cells):
            break
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
    """Returns the header in the described lines; a row may take several lines."""
    header: list[Row] = []
    start = 0
    for row in rows:
        if any(start < line <= row.line for line in given):
            header.append(row)
        start = row.line
    numbers = [row.number for row in header] or [0]
    filled = [row for row in rows if any(row.cells)]
    above = [row for row in filled if row.number < min(numbers)]
    table = _Table(filled, width)
    lines = [row.line for row in header]
    cells = [row.cells for row in header]
    return Header(max(numbers), table.names(cells), _texts(above), cells, lines)


def _texts(rows: Sequence[Row]) -> list[str]:
    """Returns the texts of rows above the header, with the cells of each joined."""
    texts: list[str] = []
    for row in rows:
        text = " / ".join(filter(None, map(_plain_text, row.cells)))
        if text:
            texts.append(text[:_ABOVE_CHARS])
    return texts[:_ABOVE]


def _filled_columns(cells: Sequence[str]) -> list[int]:
    """Returns the columns that a row fills."""
    return [column for column, cell in enumerate(cells) if cell.strip(BLANKS)]


def _plain_text(cell: str) -> str:
    return " ".join(cell.removeprefix(TYPED).split())


class _Table:
    """The first rows of a table, and the columns that have numbers or years below."""

    def __init__(self, rows: Sequence[Row], width: int) -> None:
        self.width = width
        self.rows = rows
        self.numbers: set[int] = set()
        self.years: set[int] = set()
        self.filled: set[int] = set()
        distinct = _distinct(rows)
        count = max(1, round(len(distinct) * _LOWER))
        lower = distinct[1:][-count:] or rows[1:]
        for column in range(width):
            kinds = Counter(_kind(row.cells, column) for row in lower)
            filled = kinds.total() - kinds[""] - kinds["missing"]
            if not filled:
                continue
            self.filled.add(column)
            if 2 * (kinds["number"] + kinds["year"]) >= filled:
                self.numbers.add(column)
            if 2 * kinds["year"] > filled:
                self.years.add(column)

    def is_data(self, cells: Sequence[str]) -> bool:
        """True if a cell is a number in a column of numbers, or has a number's marks anywhere.

        Running numbers next to a name belong to a header.
        """
        for column, cell in enumerate(cells):
            if _MARKED.search(cell) and _kind(cells, column) == "number":
                return True

        data: list[str] = []
        is_named = False
        for column in sorted(self.numbers):
            kind = _kind(cells, column)
            is_named = is_named or kind == "text"
            if kind == "number" or (kind == "year" and column in self.years):
                data.append(_plain_text(cells[column]))
        if is_named and _is_running(data):
            return False
        return bool(data)

    def is_title(self, row: Row, after: Row | None) -> bool:
        """True for a row above the header.

        It has a text at its start, or few texts that the next row does not continue.
        """
        if self.width == 1:
            return False
        filled = _filled_columns(row.cells)
        may_lack = 1 if self.width > 2 else 0
        if len(row.cells) < self.width - may_lack:
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
        if after is None or _filled_columns(row.cells) != [0, 1]:
            return False
        if not _DAY.match(_plain_text(row.cells[1])):
            return False
        if self.width == 2 and after.number == row.number + 1:
            return False  # the day may be the name of its column
        kinds = {_kind(after.cells, column) for column in range(self.width)}
        if not kinds <= {"text", "year"}:
            return False
        return bool(self.numbers) and not self.is_data(after.cells)

    def is_unit(self, cells: Sequence[str], header: Sequence[Row]) -> bool:
        """True for a lone text below a header, such as (in millions): it holds for all columns."""
        filled = _filled_columns(cells)
        if len(filled) != 1 or filled == [0] or self.width < 3:
            return False
        text = _plain_text(cells[filled[0]])
        is_bracketed = text.startswith("(") and text.endswith(")")
        return is_bracketed and len(_filled_columns(header[-1].cells)) > 1

    def is_centred(self, header: Sequence[Row]) -> bool:
        """True for a lone text in the middle of columns of numbers.

        It may belong to all of them, or to those after it.
        """
        filled = _filled_columns(header[-1].cells)
        if len(header) != 1 or len(filled) != 1 or filled[0] < 2:
            return False
        return {*range(1, filled[0])} <= self.numbers

    def continues(self, cells: Sequence[str], header: Sequence[Row]) -> bool:
        """True if a row belongs to the header above it.

        It names columns of numbers that the rows above leave unnamed.
        """
        above = header[-1].cells
        if any(_kind(cells, column) == "number" for column in range(len(cells))):
            return False

        texts = {column for column in self.numbers if _kind(cells, column) in ("text", "year")}
        blank = [column for column in range(self.width) if _kind(cells, column) == ""]
        is_lone_name = len(blank) == self.width - 1 and 0 not in blank
        if not texts or is_lone_name:
            return False
        if 0 in blank:
            return len(_filled_columns(cells)) > 1 or len(_filled_columns(above)) <= 1
        if any(_kind(above, column) == "" for column in texts):
            return True
        if 0 in self.numbers or _kind(above, 0) != "":
            return False
        return self.numbers <= texts

    def names(self, rows: list[list[str]]) -> list[str]:
        """Returns a name for each column: the texts above it, joined with blanks."""
        width = max([self.width, *map(len, rows)])
        if self._has_names_of_rows(rows):
            rows = [["", *row] for row in rows]
        padded: list[list[str]] = []
        for row in rows:
            cells = [_plain_text(cell)[:_NAME_CHARS] for cell in row]
            padded.append(cells + [""] * (width - len(cells)))
        for upper, lower in zip(padded, padded[1:], strict=False):
            _spread(upper, lower)

        names: list[str] = []
        for column in range(width):
            parts = [row[column] for row in padded]
            name = " ".join(dict.fromkeys(filter(None, parts)))
            names.append(name[:_JOINED_CHARS].strip() or f"column_{column + 1}")
        return numbered_columns(names)

    def _has_names_of_rows(self, rows: list[list[str]]) -> bool:
        """True if the first column has no name of its own, as R writes it."""
        if not rows or self.width <= 2 or len(rows[-1]) != self.width - 1:
            return False
        return {0, self.width - 1} <= self.filled


def _distinct(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows without repetitions: a repeated header is no data below itself."""
    first: dict[tuple[str, ...], Row] = {}
    for row in rows:
        first.setdefault(tuple(row.cells), row)
    return list(first.values())


def _spread(upper: list[str], lower: list[str]) -> None:
    """Fills the cells that a merged one left empty.

    Merged are few names above many, names above years, and names above equal names.
    """
    filled = len([*filter(None, upper[1:])])
    if not filled:
        return
    names = [*filter(None, lower[1:])]
    are_years = bool(names) and all(map(_YEAR.fullmatch, names))
    are_few = 2 * filled <= max(len(names), 1) + (filled == 1)
    have_equals = len(set(names)) < len(names)
    if not (are_few or are_years or have_equals):
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
    """True for consecutive numbers: 1, 2, 3."""
    if len(cells) < 2 or not all(cell.isdecimal() and len(cell) < 9 for cell in cells):
        return False
    numbers = [*map(int, cells)]
    return all(after - before == 1 for before, after in pairwise(numbers))
