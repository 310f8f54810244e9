"""An inquiry: a question beside all that was read to answer it.

`Inquiry` takes the question and the outputs of the tools. It sorts these into queries that found
rows (`AnsweredQuery`), lists of tables (their columns), and other texts. The rules of this room
ask it for what they compare: `only_query`, `columns`, `known_words`, and the like.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain

from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.doubts.query_shape import (
    QueryShape,
    plain_number,
    shape_of,
)
from temporal_supervisor.supervision.grounding.rows.listed_tables import (
    ListedColumn,
    listed_tables,
)
from temporal_supervisor.supervision.grounding.rows.markdown_tables import (
    MarkdownTable,
    read_tables,
)
from temporal_supervisor.supervision.grounding.rows.queries import Query, read_query, sql_in
from temporal_supervisor.supervision.grounding.sources import BRIEF, Source
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

# The digits anywhere in a text: 1994 and 05 in "1994-05", 12.5 in "12.5 m".
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
# "1,234", "1,234,567"; not "2001,2002", "12,5".
_GROUPS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])")
_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![\d.,])")  # "12,5", "7,05"
# A whole cell that is a number, also with signs: "-3", "$ 1,234.50", "12 %"; not "12 m", "2nd".
_NUMBER = re.compile(r"[^\w\s]{0,3}-?\d[\d,. ]*%?")
# A whole cell that one can calculate with: "-3", "12.50"; not "1,234" or "12%".
PLAIN_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_WORD = re.compile(r"[^\W_]+")
_COMPARED_ROWS = 50  # nobody adds up more of them without a tool, or finds their highest surely


@dataclass(frozen=True)
class AnsweredQuery:
    """A query that found rows: its shape, the tables that it read, and its output.

    `chosen_numbers` are those that a column has to equal in its rows. `facts` are those of its
    result.
    """

    shape: QueryShape
    tables: tuple[str, ...]
    output: tuple[MarkdownTable, ...]
    chosen_numbers: tuple[str, ...] = ()
    facts: QueryFacts = QueryFacts()

    @property
    def rows(self) -> int:
        """The number of rows that it shows."""
        return sum(len(table.rows) for table in self.output)

    @property
    def heads(self) -> list[str]:
        """The heads of its columns."""
        return [head for table in self.output for head in table.columns]

    @cached_property
    def cells(self) -> list[str]:
        """All its cells that hold something."""
        rows = [row for table in self.output for row in table.rows]
        return [*filter(None, chain.from_iterable(row.cells for row in rows))]

    @property
    def numbers(self) -> list[str]:
        """Its cells that are numbers."""
        return [cell for cell in self.cells if _NUMBER.fullmatch(cell.strip())]

    @property
    def has_digits(self) -> bool:
        """True if a cell has a digit: it may be a figure or a date."""
        return any(_DIGITS.search(cell) for cell in self.cells)

    @property
    def total(self) -> Decimal | None:
        """The sum of its rows, if it shows several and one column of them has numbers."""
        columns = [self._numbers_of(place) for place in range(len(self.heads))]
        added = [numbers for numbers in columns if numbers]
        if self.rows < 2 or len(self.output) != 1 or len(added) != 1:
            return None
        return sum(added[0], Decimal(0))

    def _numbers_of(self, place: int) -> list[Decimal]:
        """Returns the numbers in a column; none if a row has something else there."""
        rows = [row.cells for table in self.output for row in table.rows]
        cells = [row[place] for row in rows if place < len(row)]
        if not all(PLAIN_NUMBER.fullmatch(cell) for cell in cells):
            return []
        return [Decimal(cell) for cell in cells]

    @property
    def can_be_compared(self) -> bool:
        """True if its rows can be compared with each other, or counted by a name that comes again.

        The first rows of a table, in whatever order, tell nothing about the others.
        """
        is_glance = self.shape.limit > 0 and self.rows >= self.shape.limit and not self.shape.sorts
        if is_glance or self.rows > _COMPARED_ROWS:
            return False
        has_repeated_name = len(set(self.cells)) < len(self.cells)
        return self.rows > 1 and (self.has_digits or has_repeated_name)

    def cells_in(self, text: str) -> frozenset[str]:
        """Returns its cells that a text has."""
        numbers = _numbers_in(text)
        lowered = text.lower()
        return frozenset(cell for cell in self.cells if _has_cell(cell, numbers, lowered))


class Inquiry:
    """A question, and what was read for it: the `sources` are the outputs of tools, and the brief.

    `finding` is the text that came of it, if that is known.
    """

    def __init__(self, question: str, sources: Sequence[Source], finding: str = "") -> None:
        self.question = question
        self.finding = finding
        self.queries: list[AnsweredQuery] = []
        texts: list[Source] = []
        for source in sources:
            query = read_query(source.arguments)
            output = read_tables(source.text) if query is not None else []
            if query is None:
                texts.append(source)
            elif output:
                self.queries.append(_answered_query(query, source, output))
        self.shapes = [query.shape for query in self.queries]
        self.columns = _columns_of(self.queries, texts)
        outputs = [source for source in texts if source.name != BRIEF]
        self._other_texts = [each.text for each in outputs if not each.text.startswith("table ")]

    @property
    def has_other_texts(self) -> bool:
        """True if there is the output of a tool that neither queries nor lists tables."""
        return bool(self._other_texts)

    @cached_property
    def only_query(self) -> AnsweredQuery | None:
        """The query, if there is only one, or if one shows whatever the finding has of them all.

        So a second query with the mistake of the first one is caught, too. Of two that show
        all of it, it is the later one.
        """
        if len(self.queries) == 1:
            return self.queries[0]

        cells_of = [query.cells_in(self.finding) for query in self.queries]
        all_cells = frozenset[str]().union(*cells_of)
        if not all_cells:
            return None
        for query, cells in zip(reversed(self.queries), reversed(cells_of), strict=True):
            if cells == all_cells:
                return query
        return None

    @property
    def only_row(self) -> AnsweredQuery | None:
        """The only query, if it shows one row."""
        query = self.only_query
        return query if query is not None and query.rows == 1 else None

    @property
    def only_figure(self) -> AnsweredQuery | None:
        """The only query, if it shows one figure."""
        query = self.only_query
        return query if query is not None and len(query.numbers) == 1 else None

    @property
    def can_be_compared(self) -> bool:
        """True if whoever answers has seen rows that can be compared without a query."""
        return any(query.can_be_compared for query in self.queries)

    @cached_property
    def finding_numbers(self) -> frozenset[str]:
        """All numbers in the finding."""
        return _numbers_in(self.finding)

    @cached_property
    def query_numbers(self) -> frozenset[str]:
        """All numbers in queries."""
        return frozenset[str]().union(*(shape.numbers for shape in self.shapes))

    @cached_property
    def read_numbers(self) -> frozenset[str]:
        """All numbers in rows and in other texts."""
        return _numbers_in(self._read_text)

    @cached_property
    def known_words(self) -> frozenset[str]:
        """All words in queries, in rows and in other texts."""
        read = frozenset(words_of(self._read_text))
        return read.union(*(shape.words for shape in self.shapes))

    @cached_property
    def chosen_words(self) -> frozenset[str]:
        """The words of the texts in queries."""
        return frozenset(words_of(" ".join(text for shape in self.shapes for text in shape.texts)))

    @cached_property
    def heads(self) -> list[str]:
        """The names of all columns that are known."""
        shown = [head for query in self.queries for head in query.heads]
        return [*(column.name for column in self.columns), *shown]

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that may be names: of columns, of their values, and of texts in queries."""
        values = (value for column in self.columns for value in column.values)
        texts = (text for shape in self.shapes for text in (*shape.texts, *shape.names))
        return frozenset(_WORD.findall(" ".join([*self.heads, *values, *texts]).lower()))

    @cached_property
    def _read_text(self) -> str:
        """The cells in the rows of queries, and other texts."""
        return "\n".join([*_cells_of(self.queries), *self._other_texts])

    def texts_beside(self, query: AnsweredQuery) -> list[str]:
        """Returns the cells in the rows of other queries, and other texts."""
        others = [each for each in self.queries if each is not query]
        return [*_cells_of(others), *self._other_texts]

    def numbers_beside(self, query: AnsweredQuery) -> frozenset[str]:
        """Returns the numbers in the rows of other queries and in other texts."""
        return _numbers_in("\n".join(self.texts_beside(query)))

    def has_head(self, *parts: str) -> bool:
        """True if the name of a column has one of these parts."""
        return any(part in head.lower() for part in parts for head in self.heads)


def place_of(key: tuple[str, ...], words: Sequence[str]) -> int:
    """Returns the index in `words` at which those of a key follow each other; -1 without one."""
    for at in range(len(words) - len(key) + 1):
        if tuple(words[at : at + len(key)]) == key:
            return at
    return -1


def _cells_of(queries: Iterable[AnsweredQuery]) -> Iterator[str]:
    return chain.from_iterable(query.cells for query in queries)


def _answered_query(
    query: Query,
    source: Source,
    output: Sequence[MarkdownTable],
) -> AnsweredQuery:
    return AnsweredQuery(
        shape=shape_of(sql_in(source.arguments)),
        tables=tuple(query.tables),
        output=tuple(output),
        chosen_numbers=tuple(_chosen_numbers(query)),
        facts=source.facts,
    )


def _chosen_numbers(query: Query) -> Iterator[str]:
    """Yields the numbers that a column has to equal in the rows of a query."""
    for compared in query.filters.values():
        if compared.ranged:
            continue
        for value in compared.values:
            if _DIGITS.fullmatch(value):
                yield plain_number(value)


def _columns_of(queries: Sequence[AnsweredQuery], texts: Sequence[Source]) -> list[ListedColumn]:
    """Returns the columns of the tables that queries read, as far as a text lists them."""
    listed = listed_tables(source.text for source in texts)
    names = dict.fromkeys(name for query in queries for name in query.tables)
    return [column for name in names for column in listed.get(name, [])]


def _has_cell(cell: str, numbers: frozenset[str], text: str) -> bool:
    """True if a text in small letters, or its numbers, have a cell."""
    if _NUMBER.fullmatch(cell.strip()):
        return not numbers.isdisjoint(_numbers_in(cell))
    return cell.lower() in text


def _numbers_in(text: str) -> frozenset[str]:
    """Returns the numbers in a text, also 12.5 for the "12,5" of other countries."""
    plain = _GROUPS.sub(lambda groups: groups[0].replace(",", ""), text)
    written = _DIGITS.findall(plain)
    written += [f"{found[1]}.{found[2]}" for found in _COMMA.finditer(plain)]
    return frozenset(plain_number(number) for number in written)
