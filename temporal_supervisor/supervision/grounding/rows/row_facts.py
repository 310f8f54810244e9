"""The facts about a figure in a table: its row and column, their names, years and units.

A figure of a table belongs to its row. The row's words are its cells, the head of the figure's
column, and the values by which the query chose its rows. Words of a text are evidence against a row
only where the table or the query knows them as another value of a column: a name that no column has
proves nothing.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from temporal_supervisor.supervision.base.text import has_whole
from temporal_supervisor.supervision.grounding.rows.column_kinds import (
    cells_of,
    holds_texts,
    holds_times,
    is_number,
    is_time_head,
    units_of,
)
from temporal_supervisor.supervision.grounding.rows.listed_tables import listed_names
from temporal_supervisor.supervision.grounding.rows.markdown_tables import (
    MarkdownTable,
    TableRow,
    read_tables,
)
from temporal_supervisor.supervision.grounding.rows.queries import Filter, Query, read_query
from temporal_supervisor.supervision.grounding.units import (
    DIMENSIONS,
    measures_implied,
    mentioned_scales,
    mentioned_units,
)
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import (
    Day,
    dates_in,
    is_date,
    is_year,
    months_of,
    years_in,
)
from temporal_supervisor.supervision.grounding.written_figures import values

# A cell that is a figure, with up to two words behind it: "12.5", "42 cm", "12.3 million EUR".
# Digits in "Q3", "A12" and "2019/20" are parts of names.
_FIGURE_CELL = re.compile(
    r"[^\w\n]{0,4}[\d.,'’]*+\d?"
    r"(?:\s?[^\W\d_]{1,12}+\.?){0,2}"
    r"[^\w\n]{0,4}"
)
# Values of cells that name nothing.
# fmt: off
_NO_NAMES = frozenset([
    "yes", "no", "true", "false", "none", "null", "nan", "na", "all", "total", "other", "unknown",
    "ja", "nein", "gesamt",
])
# fmt: on
_EXTREMES = 100  # superlatives that are compared with rows
_NAME_WORDS = 12  # a cell of more is a text
_NAME_SIGNS = 80
_MEASURES = ("length", "mass", "energy", "power", "temperature", "data")


@dataclass(frozen=True)
class Mention:
    """A name of a column in a text."""

    words: tuple[str, ...]
    written: str
    columns: frozenset[str]


class Names:
    """The values of the columns of all tables, by which their names are found in a text."""

    def __init__(self, *, have_all: bool = False) -> None:
        """Begins without names. With `have_all` nothing else was read that might name a unit."""
        self._have_all = have_all
        self._columns: dict[tuple[str, ...], set[str]] = {}
        self._longest: dict[str, int] = {}
        self._places: list[Places] = []
        self.extremes_left = _EXTREMES
        self.columns_of: dict[str, set[str]] = {}
        """The columns of the tables that queries read, as far as they are known."""

    def add(self, column: str, value: str) -> None:
        """Notes a value of a column, unless it is a number or a text."""
        if len(value) > _NAME_SIGNS or is_number(value):
            return
        words = tuple(words_of(value))
        if not 0 < len(words) <= _NAME_WORDS or not any(_is_name(value, word) for word in words):
            return

        self._columns.setdefault(words, set()).add(column)
        self._longest[words[0]] = max(len(words), self._longest.get(words[0], 0))

    def unknown_unit(self, unit: str | None) -> str:
        """Returns that nothing is measured so, if no source has any unit of this kind.

        Empty if one has. Texts without tables may measure it by a word such as weight alone.
        """
        kind = DIMENSIONS.get(unit or "")
        if kind not in _MEASURES or not (self._have_all or self._columns):
            return ""
        if kind in self._measured or kind in self._of_figures:
            return ""
        is_implied = not self._columns and kind in self._implied
        return "" if is_implied else f"nothing is given in {unit}"

    @cached_property
    def is_sorted(self) -> bool:
        """True if any query sorted its rows, or computed an extreme.

        Others look up, too, what it found.
        """
        queries = [place.query for place in self._places if place.query]
        return any(query.order is not None or query.aggregates for query in queries)

    @cached_property
    def _measured(self) -> frozenset[str]:
        """The kinds of units that any source names."""
        units = chain.from_iterable(place.units for place in self._places)
        return frozenset(DIMENSIONS[unit] for unit in units)

    @cached_property
    def _of_figures(self) -> frozenset[str]:
        """The kinds of units that stand directly behind digits, as in 40km."""
        units: set[str] = set()
        for place in self._places:
            for figure in values(place.text):
                if figure.unit is not None:
                    units.add(figure.unit)
        return frozenset(DIMENSIONS[unit] for unit in units)

    @cached_property
    def _implied(self) -> frozenset[str]:
        """The kinds of units that words of any source imply."""
        return frozenset[str]().union(*(measures_implied(place.text) for place in self._places))

    def learn(self, place: "Places") -> None:
        """Notes the values of a source's tables and of its query, and the tables that it lists."""
        self._places.append(place)
        for table in place.tables:
            for number, column in enumerate(table.columns):
                for value in set(cells_of(table, number)):
                    self.add(column.lower(), value)
        if place.query:
            self._learn_query(place.query)
        for name, columns in listed_names(place.text):
            self.columns_of.setdefault(name, set()).update(columns)

    def _learn_query(self, query: Query) -> None:
        """Notes the values by which a query chose its rows, and the columns that it names."""
        for name, each in query.filters.items():
            for value in each.values:
                self.add(name, value)
        for table_name in query.tables:
            self.columns_of.setdefault(table_name, set()).update(query.filters)

    def mentions(self, text: str) -> list[Mention]:
        """Returns the names in a text, of several that overlap the longest."""
        if not self._columns:
            return []
        words: list[str] = []
        written: list[str] = []  # each word as the text has it, with its signs
        for raw in text.split():
            for word in words_of(raw):
                words.append(word)
                written.append(raw)

        found: list[Mention] = []
        at = 0
        while at < len(words):
            length = self._length_of_name(words, at)
            if length:
                key = tuple(words[at : at + length])
                raw = " ".join(dict.fromkeys(written[at : at + length]))
                if length > 1 or _is_name(raw, key[0]):
                    columns = frozenset(self._columns[key])
                    found.append(Mention(key, raw.strip(".,;:()|*\"'"), columns))
            at += length or 1
        return found

    def _length_of_name(self, words: list[str], at: int) -> int:
        """Returns the number of words of the longest name that begins at a word; 0 if none does."""
        longest = min(self._longest.get(words[at], 0), len(words) - at)
        for length in range(longest, 0, -1):
            if tuple(words[at : at + length]) in self._columns:
                return length
        return 0


def _is_name(written: str, word: str) -> bool:
    """True if one word may be a name: short ones are where they are written with capitals alone."""
    if word in _NO_NAMES or word.isdigit():
        return False
    if len(word) >= 3:
        return True
    return has_whole(written.lower(), word) and written.isupper()


@dataclass(frozen=True)
class Facts:
    """Facts about a figure in a table: the words of its row, its years and dates, and its column.

    `columns` are those that the table or its query knows. A figure is `undated` or `unnamed` if its
    query leaves open which year or name it belongs to; `alike` rows have its row's words and dates,
    and other figures. `amounts` are figures of the table that look like years.
    """

    table: MarkdownTable
    row: TableRow
    column: str
    words: frozenset[str]
    columns: frozenset[str]
    years: frozenset[int]
    dates: frozenset[Day]
    year_range: tuple[int, int] | None
    amounts: frozenset[int]
    undated: bool
    unnamed: bool
    units: frozenset[str]
    filters: dict[str, Filter]
    tables: tuple[str, ...]
    alike: int
    written: str


class _Times(NamedTuple):
    """Years of a figure, or the first and last of a range."""

    years: set[int]
    year_range: tuple[int, int] | None = None
    are_several: bool = False
    """True if a query chose more than one, so that it is open which of them a row is of."""

    def __bool__(self) -> bool:
        """True if any are known."""
        return bool(self.years or self.year_range)


class Places:
    """The tables of one source with its query, and the facts of each place in them.

    `is_cut` is True if the query found more rows than the text shows.
    """

    def __init__(self, text: str, arguments: str, *, is_cut: bool = False) -> None:
        self.text = text
        self.is_cut = is_cut
        self.tables = read_tables(text)
        self.query: Query | None = read_query(arguments)
        self._rows: list[tuple[MarkdownTable, TableRow]] = []
        for table in self.tables:
            self._rows += [(table, row) for row in table.rows]
        self._starts = [row.start for _, row in self._rows]
        self._found: dict[int, Facts | None] = {}
        self._amounts_of: dict[MarkdownTable, frozenset[int]] = {}
        self._dated_of: dict[MarkdownTable, set[int]] = {}

    @cached_property
    def units(self) -> frozenset[str]:
        """The units that the text names anywhere."""
        return mentioned_units(self.text)

    @property
    def has_rows(self) -> bool:
        """True if the source is a table with rows."""
        return bool(self._rows)

    @cached_property
    def scales(self) -> frozenset[Decimal]:
        """The scales that heads of columns name, such as `employees_thousands`."""
        heads = chain.from_iterable(table.columns for table in self.tables)
        return mentioned_scales(" | ".join(heads))

    @cached_property
    def asked_years(self) -> frozenset[str]:
        """The years by which the query chose its rows."""
        if not self.query:
            return frozenset()
        values = chain.from_iterable(each.values for each in self.query.filters.values())
        return frozenset(map(str, _years(values)))

    def is_in_row(self, place: int) -> bool:
        """True if a place of the text lies in a row of a table."""
        number = bisect_right(self._starts, place) - 1
        return number >= 0 and place < self._rows[number][1].end

    def facts(self, place: int, names: Names) -> Facts | None:
        """Returns the facts about the figure at a place of the text; None outside of tables."""
        if not self.is_in_row(place):
            return None
        number = bisect_right(self._starts, place) - 1
        if place not in self._found:
            table, row = self._rows[number]
            self._found[place] = self._facts(table, row, row.column_at(place), names)
        return self._found[place]

    def _facts(self, table: MarkdownTable, row: TableRow, at: int, names: Names) -> Facts | None:
        """Returns the facts about the figure in a cell; None if it is part of a name."""
        if at >= len(table.columns):
            return None
        written = row.cells[at] if at < len(row.cells) else ""
        if at < len(row.cells) and not _FIGURE_CELL.fullmatch(written):
            return None

        query = self.query or Query()
        column = table.columns[at]
        texts, dates = self._texts_and_dates(table, row)
        amounts = self._amounts(table)
        times = self._times(column, dates, amounts)
        words = [*texts, column, *query.tables, *_fixed(table, query)]
        return Facts(
            table=table,
            row=row,
            column=column,
            words=frozenset(words_of(" ".join(words))),
            columns=frozenset([*map(str.lower, table.columns), *query.filters]),
            years=frozenset(times.years),
            dates=frozenset(chain.from_iterable(map(_dates_of, (column, *dates)))),
            year_range=times.year_range,
            amounts=amounts,
            undated=self._is_undated(table, times, names),
            unnamed=self._is_unnamed(table),
            units=units_of(column),
            filters=query.filters,
            tables=tuple(query.tables),
            alike=self.alike.get(row.start, 1),
            written=written,
        )

    def _texts_and_dates(self, table: MarkdownTable, row: TableRow) -> tuple[list[str], list[str]]:
        """Returns the cells of a row that are texts, and those that may be dates: texts, too."""
        dated = self._dated(table)
        texts: list[str] = []
        dates: list[str] = []
        for number, cell in enumerate(row.cells[: len(table.columns)]):
            is_text = not is_number(cell)
            if is_text:
                texts.append(cell)
            if is_text or number in dated:
                dates.append(cell)
        return texts, dates

    def _times(self, column: str, dates: Sequence[str], amounts: frozenset[int]) -> _Times:
        """Returns the years of a figure: of its column, its row, or those that its query chose.

        A row whose only years are amounts has none of its own.
        """
        years = _years([column]) or _years(dates)
        chosen = _chosen_times(self.query or Query())
        has_own = bool(years) and not years <= amounts
        if has_own or (years and not chosen):
            return _Times(years)
        return chosen

    def _is_undated(self, table: MarkdownTable, times: _Times, names: Names) -> bool:
        """True if the query leaves open which year a row is of."""
        if self.query is None or not self.query.tables:
            return False
        has_many_rows = len(table.rows) > 1
        if times:
            return has_many_rows and times.are_several
        if _years(self.query.tables):
            return False
        known = (names.columns_of.get(name, ()) for name in self.query.tables)
        has_time_column = any(map(is_time_head, chain.from_iterable(known)))
        return has_time_column or (has_many_rows and not self._has_names(table))

    def _is_unnamed(self, table: MarkdownTable) -> bool:
        """True if the query leaves open which name a row is of."""
        if self.query is None or not self.query.tables or len(table.rows) < 2:
            return False
        return not self._has_names(table) and not _equal_to_text(self.query)

    def _has_names(self, table: MarkdownTable) -> bool:
        """True if a table has a column of texts that are no times."""
        others = set(range(len(table.columns))) - self._dated(table)
        return any(holds_texts(table, number) for number in others)

    def _dated(self, table: MarkdownTable) -> set[int]:
        """Returns the numbers of the columns of times, by their heads or by their cells."""
        if table not in self._dated_of:
            numbers = range(len(table.columns))
            self._dated_of[table] = {number for number in numbers if holds_times(table, number)}
        return self._dated_of[table]

    def _amounts(self, table: MarkdownTable) -> frozenset[int]:
        """Returns the figures of a table that look like years, of columns that don't say when."""
        if table not in self._amounts_of:
            heads = enumerate(table.columns)
            apart = {number for number, column in heads if not is_time_head(column)}
            if len(table.rows) > 1:
                apart -= self._dated(table)
            cells = chain.from_iterable(cells_of(table, number) for number in apart)
            self._amounts_of[table] = frozenset(map(int, filter(is_year, cells)))
        return self._amounts_of[table]

    @cached_property
    def alike(self) -> dict[int, int]:
        """The number of rows with a row's words and dates and other figures, by the row's start."""
        counts: dict[int, int] = {}
        for table in self.tables:
            dated = self._dated(table)
            figures_of: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
            key_of: dict[int, tuple[str, ...]] = {}
            for row in table.rows:
                key: list[str] = []
                figures: list[str] = []
                for number, cell in enumerate(row.cells):
                    is_key = number in dated or not is_number(cell)
                    (key if is_key else figures).append(cell)
                key_of[row.start] = tuple(key)
                figures_of.setdefault(tuple(key), set()).add(tuple(figures))
            for start, words in key_of.items():
                counts[start] = len(figures_of[words])
        return counts


def _dates_of(cell: str) -> set[Day]:
    """Returns the dates of a cell; of one that has more than a date the months alone."""
    return dates_in(cell) if is_date(cell) else months_of(cell)


def _years(texts: Iterable[str]) -> set[int]:
    """Returns the years that texts name, those of ranges included."""
    years: set[int] = set()
    for text in texts:
        single, bounds = years_in(text.replace("_", " "))
        years |= single | bounds
    return years


def _chosen_times(query: Query) -> _Times:
    """Returns the years by which a query chose its rows."""
    single: set[int] = set()
    bounds: set[int] = set()
    for each in query.filters.values():
        (bounds if each.ranged else single).update(_years(each.values))
    if single:
        return _Times(single, are_several=len(single) > 1)
    if bounds:
        return _Times(set(), (min(bounds), max(bounds)), are_several=len(bounds) > 1)
    return _Times(set())


def _fixed(table: MarkdownTable, query: Query) -> list[str]:
    """Returns the values by which a query chose its rows, of the columns that it does not show."""
    shown = {column.lower() for column in table.columns}
    values: list[str] = []
    for name, each in query.filters.items():
        if name not in shown:
            values += each.values
    return values


def _equal_to_text(query: Query) -> bool:
    """True if a query chose its rows by a text."""
    values = chain.from_iterable(each.values for each in query.filters.values())
    return not all(map(is_number, values))
