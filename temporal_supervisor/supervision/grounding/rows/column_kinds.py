"""The columns of a table: whether one holds figures, texts or times, and in which units.

A column is known by its head, and where that does not tell by its first cells.
"""

import re

from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable
from temporal_supervisor.supervision.grounding.units import mentioned_units
from temporal_supervisor.supervision.grounding.wording.time_words import dates_in

# A cell of digits and signs alone: "12.5", "−3,114", "(4.2)", but neither "42 cm" nor "2019/20".
_NUMBER_CELL = re.compile(r"[^\w\n]{0,4}\d[\d.,'’\s]*[^\w\n]{0,4}")
# The head of a column of times: "Year", "planted_date", "Erntejahr".
_TIME_HEAD = re.compile(
    r"year|date|month|quarter|season|period"
    r"|jahr|datum|monat|quartal|saison"
    r"|année|an\b|año|fecha",
    re.IGNORECASE,
)
# Words of a head that are no units there: `min(price_eur)` is in euros, not in minutes.
_ODD_UNITS = re.compile(r"\b(?:min|max|sec|second|first|third)\b|^(?:min|max)_", re.IGNORECASE)
_RECENT_YEAR = re.compile(r"(?:19|20)\d\d")  # "1994"; not "1066", "1994-95"
_WORD = re.compile(r"[^\W\d_]{3}")  # in "Wins", "Avg. of 2004"; not in "#", "No", "2004"
_TEXT_ROWS = 50  # by whose cells a column of texts is known
_DATE_ROWS = 20  # by whose cells a column of dates is known


def cells_of(table: MarkdownTable, number: int, rows: int | None = None) -> list[str]:
    """Returns the cells of a column, of the first rows alone if their number is given."""
    return [row.cells[number] for row in table.rows[:rows] if number < len(row.cells)]


def is_number(cell: str) -> bool:
    """True for a cell of digits and signs alone."""
    return _NUMBER_CELL.fullmatch(cell) is not None


def has_word(text: str) -> bool:
    """True if a head or a cell has a word by which a sentence may name it."""
    return _WORD.search(text) is not None


def written_head(column: str) -> str:
    """Returns the pattern of a head in a sentence, with any white space between its words."""
    return r"\s".join(map(re.escape, column.split()))


def is_time_head(column: str) -> bool:
    """True for a head with a word such as year, or a part of one."""
    return _TIME_HEAD.search(column) is not None


def holds_times(table: MarkdownTable, number: int) -> bool:
    """True for a column of times, by its head or by its cells.

    A head such as "Years in km" names another unit, and no times.
    """
    column = table.columns[number]
    if is_time_head(column) and mentioned_units(column) <= {"years", "months"}:
        return True
    return _holds_dates(table, number)


def _holds_dates(table: MarkdownTable, number: int) -> bool:
    """True if every cell that is filled is a date with its year, and one is."""
    filled = [cell for cell in cells_of(table, number, _DATE_ROWS) if cell.strip()]
    return bool(filled) and all(map(_has_year, filled))


def _has_year(cell: str) -> bool:
    if _RECENT_YEAR.fullmatch(cell):
        return True
    return any(year for year, _, _ in dates_in(cell))


def holds_texts(table: MarkdownTable, number: int) -> bool:
    """True for a column of which more than half of the filled cells are texts."""
    filled = [*filter(None, cells_of(table, number, _TEXT_ROWS))]
    texts = [cell for cell in filled if not is_number(cell)]
    return 2 * len(texts) > len(filled)


def is_figure_column(table: MarkdownTable, column: str) -> bool:
    """True for a column most of whose cells are figures."""
    return not holds_texts(table, table.columns.index(column))


def is_text_column(table: MarkdownTable, column: str) -> bool:
    """True for a column of names: neither figures nor dates."""
    number = table.columns.index(column)
    if is_time_head(column) or not holds_texts(table, number):
        return False
    return not _holds_dates(table, number)


def units_of(column: str) -> frozenset[str]:
    """Returns the units that the head of a column names."""
    if _TIME_HEAD.fullmatch(column.strip()):
        return frozenset()
    return mentioned_units(_ODD_UNITS.sub(" ", column))
