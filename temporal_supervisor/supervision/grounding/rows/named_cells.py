"""Cells that a text names by row and column: "Sales, 2019: 372", where the row of sales has 1,671.

Only a sentence that names nothing else is compared: a row by its text, a column by its head or by
the only year in it, one figure, and words of grammar. With any further word it may be about
something that was computed.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.column_kinds import is_text_column
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.units import SCALE, UNIT
from temporal_supervisor.supervision.grounding.written_figures import (
    Figure,
    is_same_in_any_scale,
    whole_values,
)

_ROWS = 200  # of a table with more no cells are compared
_COLUMNS = 40
_SENTENCES = 60  # of a text that are compared
_KEY_SIGNS = 120  # a longer cell names no row
_TABLES = 16  # whose names are remembered
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")  # "2019"; not "12019"
_LETTERS = re.compile(r"[^\W\d_]{2}")
# Behind a head: "($000s)", "$m", "(US$'000)"; not "months".
_MONEY = re.compile(
    r"\s{0,2}\(?(?:US|A|C)?[$€£¥][’'`]?(?:000s?|m|mn|bn|k)?\)?(?![^\W_])",
    re.IGNORECASE,
)
# Between names: "Sales and costs", "Sales; costs", "Sales, costs"; not "1,234".
_PIECES = re.compile(r"\s(?:and|und|et|y)\s|;\s|,\s(?!\d{3}(?!\d))")
_WORDS = re.compile(r"[^\W\d_]+")
_MEASURE = re.compile(rf"(?:{UNIT}|{SCALE})", re.IGNORECASE)
_GRAMMAR_WORDS = """
a an the of in at for to on by it its as and was were is are be stood amounted reached came totalled
totaled only row column table value year years fiscal fy ended end jahr im am der die das war waren
ist sind betrug betrugen
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())


def wrong_cells(text: str, tables: Sequence[MarkdownTable]) -> Iterator[tuple[str, str]]:
    """Yields each sentence that gives a named cell another figure, with the reason."""
    narrow = [table for table in tables if len(table.columns) <= _COLUMNS]
    small = [table for table in narrow if len(table.rows) <= _ROWS]
    if not small:
        return
    for start, stop in sentence_spans(text)[:_SENTENCES]:
        sentence = text[start:stop]
        if sentence.lstrip().startswith(("|", "#", ">")):
            continue
        reasons = [_wrong_in(sentence, table) for table in small]
        known = [reason for reason in reasons if reason is not None]
        # Another table may have the figure in a cell of the same name.
        if known and all(known):
            yield sentence.strip(), known[0]


def _wrong_in(sentence: str, table: MarkdownTable) -> str | None:
    """Returns the difference of a sentence from a table, "" without one.

    None if the sentence names no cell of the table.
    """
    rows_of = _rows_by_name(table)
    named = _longest([name for name in rows_of if _place(name, sentence) is not None])
    if len(named) != 1:
        return None

    key = named[0]
    rows = rows_of[key]
    pieces = [_piece(part, table) for part in _PIECES.split(_without(key, sentence))]
    if any(not piece.words <= _GRAMMAR for piece in pieces):
        return None

    reasons = [_difference(piece, key, rows, table) for piece in pieces]
    known = [reason for reason in reasons if reason is not None]
    return next(filter(None, known), "") if known else None


class _Piece(NamedTuple):
    """A part of a sentence: the column that it names, its figures, and its further words."""

    column: int | None
    figures: Sequence[Figure]
    words: frozenset[str]


def _piece(part: str, table: MarkdownTable) -> _Piece:
    """Returns a part of a sentence as it is read beside a table."""
    column_of = _columns_by_name(table)
    heads = _longest([form for form in column_of if _place(form, part) is not None])
    columns = {column_of[form] for form in heads}
    column = None
    rest = part
    if len(columns) == 1:
        (column,) = columns
        rest = _without(heads[0], part)
    words = _WORDS.findall(_MEASURE.sub(" ", rest).lower())
    return _Piece(column, whole_values(rest), frozenset(words))


def _longest(names: Sequence[str]) -> list[str]:
    """Returns the names that are not part of another one."""

    def is_part(name: str) -> bool:
        return any(name != other and name in other for other in names)

    return [name for name in names if not is_part(name)]


def _difference(
    piece: _Piece,
    key: str,
    rows: Sequence[TableRow],
    table: MarkdownTable,
) -> str | None:
    """Returns the difference of a part of a sentence from its cell; None if it names none."""
    at = piece.column
    if at is None or len(piece.figures) != 1:
        return None
    said = piece.figures[0]
    cells = [row.cells[at] for row in rows if at < len(row.cells)]
    if not cells:
        return None
    is_same = False
    for cell in cells:
        figures = whole_values(cell)
        if len(figures) != 1:
            return None
        values = [reading.value * figures[0].scale for reading in figures[0].readings]
        is_same |= any(is_same_in_any_scale(said, value) for value in values)
    return "" if is_same else f"the row of {key} has {cells[0]} in {table.columns[at]}"


@lru_cache(maxsize=_TABLES)
def _rows_by_name(table: MarkdownTable) -> dict[str, list[TableRow]]:
    """Returns the texts that name rows, each with its rows: the cells of the first text column."""
    of_text = [at for at, column in enumerate(table.columns) if is_text_column(table, column)]
    if not of_text:
        return {}
    first = of_text[0]
    named: dict[str, list[TableRow]] = {}
    for row in table.rows:
        name = row.cells[first] if first < len(row.cells) else ""
        if _LETTERS.search(name) and name != "NULL" and len(name) <= _KEY_SIGNS:
            named.setdefault(name, []).append(row)
    return named


@lru_cache(maxsize=_TABLES)
def _columns_by_name(table: MarkdownTable) -> dict[str, int]:
    """Returns the columns by their names: heads, heads without a currency, years of one column."""
    years = [_YEAR.findall(column) for column in table.columns]
    named: dict[str, int] = {}
    for at, column in enumerate(table.columns):
        forms = {column.strip(), _MONEY.sub("", column).strip()}
        if len(years[at]) == 1:
            year = years[at][0]
            columns_with_it = sum(year in each for each in years)
            if columns_with_it == 1:
                forms.add(year)
        named |= {form: at for form in sorted(forms) if len(form) > 1}
    return named


def _place(name: str, text: str) -> tuple[int, int] | None:
    """Returns the place of a name as whole words of a text; None if it is not there."""
    lower = text.lower()
    wanted = name.lower()
    at = lower.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        around = lower[at - 1 : at] + lower[end : end + 1]
        if not any(sign.isalnum() for sign in around):
            return at, end
        at = lower.find(wanted, at + 1)
    return None


def _without(name: str, text: str) -> str:
    """Returns a text with a blank in place of a name."""
    place = _place(name, text)
    if place is None:
        return text
    start, end = place
    return f"{text[:start]} {text[end:]}"
