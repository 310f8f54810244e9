"""The sources of a text, read once: their figures, and the places in them where a figure may be.

`ReadSource.find` returns the place of a figure. `_meant_at` yields the places whose value, scale
and unit fit; `_doubt` has the evidence against a place: its sign, row, column or sentence.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice
from typing import Literal

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.calculations import is_constant
from temporal_supervisor.supervision.grounding.claims import near_at, plain_address, plain_text
from temporal_supervisor.supervision.grounding.rows.contradictions import (
    are_bound,
    computed_of_others,
    contradiction,
    other_words,
    wrong_unit,
)
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.queries import read_query
from temporal_supervisor.supervision.grounding.rows.row_facts import Facts, Mention, Names, Places
from temporal_supervisor.supervision.grounding.rows.superlatives import (
    Superlative,
    names_a_measure,
    not_the_extreme,
    superlative_in,
    words_of_rows,
)
from temporal_supervisor.supervision.grounding.units import (
    DIMENSIONS,
    are_apart,
    exclude_each_other,
    mentioned_scales,
    multiples,
    speaks_of_shares,
)
from temporal_supervisor.supervision.grounding.wording.directions import (
    may_be_negative,
    may_be_unsigned,
)
from temporal_supervisor.supervision.grounding.wording.near_words import Near
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import spans_in
from temporal_supervisor.supervision.grounding.written_figures import Figure, Reading, values

BRIEF = "brief"  # the name of a source that is no tool call

SourceKind = Literal["data", "computed"]

_HUNDRED = Decimal(100)
_TWO = 2
# Of the figures within the tolerance this many above and below are compared: the nearest counts.
_SORTED = 50
_LOOKED_AT = 100  # places of a figure: with more, one of them may be meant
_SPAN_CHARS = 300  # of a sentence, for its dates
_ROW_COUNT = re.compile(r"\d+ rows?\b")  # how the tools for tables end their output
# A figure in groups with a scale: "49,872 million", "$1,234k"; not "49872 million".
_GROUPED = re.compile(
    r"\D{0,4}\d{1,3}(?:,\d{3})+\s?-?(?:thousand|million|billion|trillion|bn|[mk])\b",
    re.IGNORECASE,
)
_HUNDRED_IN_TEXT = re.compile(r"(?<![\d.])100(?![\d.])")  # "* 100"; not "2100", "100.5"
_DIVISOR = re.compile(r"/\s?\(?\s?(\d{1,24}(?:\.\d{1,24})?)")  # 12 in "36 / (12 + 3)"
_DIGIT = re.compile(r"\d")
_YEAR_OR_DAY = re.compile(r"\d{1,4}")


@dataclass(frozen=True)
class Source:
    """A text that supports claims.

    A `computed` one has the `arguments` of its tool; `name` is the call as shown. `ref` leads to
    the text, if it is the output of a tool, and `facts` are those of a query's result.
    """

    text: str
    kind: SourceKind = "data"
    arguments: str = ""
    name: str = BRIEF
    ref: str = ""
    facts: QueryFacts = QueryFacts()


def _readings(figure: Figure, is_queried: bool) -> Sequence[Reading]:
    """Returns the readings of a figure of a source.

    The output of a query groups no digits: there 26.474 is not 26474.
    """
    if is_queried and "." in figure.digits and "," not in figure.digits:
        return figure.readings[-1:]
    return figure.readings


class ReadSource:
    """The figures of one source, sorted, and its text in the forms that are searched.

    They are read when they are first asked for: many sources are never searched for a figure.

    What was computed is in the units of the `data`: 3187450 - 2104310 is no dollars where these
    name euros alone, and it may be in thousands where the head of a column is. So may all figures
    where a source says in which of the `scales` amounts are given.
    """

    def __init__(
        self,
        source: Source,
        names: Names,
        data: Sequence["ReadSource"] = (),
        scales: frozenset[Decimal] = frozenset(),
    ) -> None:
        self.source = source
        self._names = names
        self._data = data
        self._arguments = source.arguments if source.kind == "computed" else ""
        self._given_scales = scales
        asked = source.arguments if source.kind == "data" else ""
        self.places = Places(source.text, asked, is_cut=source.facts.is_cut)
        self._near_there: dict[int, Near | None] = {}

    @cached_property
    def plain(self) -> str:
        """The text for the lookup of quotations: without case, emphasis and kinds of quotes."""
        return plain_text(self.source.text)

    @cached_property
    def addresses(self) -> str:
        """The text for the lookup of addresses: in lower case, these without https:// and www."""
        return plain_address(self.source.text)

    @cached_property
    def _scales(self) -> frozenset[Decimal]:
        heads = frozenset[Decimal]().union(*(read.places.scales for read in self._data))
        return mentioned_scales(self.source.text) | heads | self._given_scales

    @cached_property
    def _read(self) -> list[tuple[Decimal, Figure]]:
        """The figures, by their values: each as often as it has readings."""
        # A tool that computes repeats its arguments: they need another source.
        given: set[Decimal] = set()
        for operand in values(self._arguments):
            given.update(reading.value for reading in operand.readings)
        is_queried = read_query(self.source.arguments) is not None
        read: list[tuple[Decimal, Figure]] = []
        for figure in values(self.source.text):
            for reading in _readings(figure, is_queried):
                if reading.value not in given:
                    read.append((reading.value, figure))
        read.sort(key=lambda item: item[0])
        return read

    @cached_property
    def _values(self) -> list[Decimal]:
        return [value for value, _ in self._read]

    @cached_property
    def _figures(self) -> list[Figure]:
        return [figure for _, figure in self._read]

    @cached_property
    def _at(self) -> dict[int, Figure]:
        return {figure.start: figure for figure in self._figures}

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        return self.places.units or frozenset().union(*(read._mentioned for read in self._data))

    @cached_property
    def _units(self) -> frozenset[str]:
        """The units mentioned that a table names once for all figures, as in `generation_gwh`."""
        apart = ("share", "time")
        return frozenset(unit for unit in self._mentioned if DIMENSIONS[unit] not in apart)

    @cached_property
    def _gives_shares(self) -> bool:
        """True if figures without a unit may be percentages: there is a share, or a hundred."""
        if _HUNDRED_IN_TEXT.search(self.source.arguments):
            return True
        if self.source.kind != "computed":
            return speaks_of_shares(self.source.text) or speaks_of_shares(self.source.arguments)
        divisors = [Decimal(match[1]) for match in _DIVISOR.finditer(self._arguments)]
        if any(not is_constant(divisor) for divisor in divisors):
            return False  # 0.78 of a ratio are 78 %
        if self._operands and all(self._operands):
            return self._asks_for_shares or any(map(_is_share, chain.from_iterable(self._operands)))
        return any(read._gives_shares for read in self._data)

    @cached_property
    def _asks_for_shares(self) -> bool:
        """True if what was asked speaks of shares."""
        briefs = (read.source for read in self._data if read.source.name == BRIEF)
        return any(speaks_of_shares(brief.text) for brief in briefs)

    @cached_property
    def _spans(self) -> dict[str, dict[Decimal, int]]:
        """The times between two dates of one sentence, by unit, each with the sentence's place."""
        spans: dict[str, dict[Decimal, int]] = {}
        for start, stop in sentence_spans(self.source.text):
            if self.source.text[start:stop].lstrip().startswith("|"):
                continue
            sentence = self.source.text[start : min(stop, start + _SPAN_CHARS)]
            if len(_YEAR_OR_DAY.findall(sentence)) < _TWO:
                continue
            for unit, lengths in spans_in([sentence]).items():
                spans.setdefault(unit, {}).update(dict.fromkeys(map(Decimal, lengths), start))
        return spans

    def find(self, figure: Figure, near: Near) -> int | None:
        """Returns the place of the given figure in this source, as exact as it is written, or None.

        A place in a table counts only without evidence near the figure against its row.
        """
        for number, (at, meant) in enumerate(self._meant_at(figure)):
            if number == _LOOKED_AT or not self._doubt(at, meant, near):
                return at
        # The query chose its rows by this year, so they are of it.
        is_year = figure.unit is None and figure.digits in self.places.asked_years
        return 0 if is_year and self.places.has_rows else None

    def bound_years(self, figure: Figure) -> set[int]:
        """Returns the years to which the text binds this very number, by its words or its place."""
        values = {reading.value * figure.scale for reading in figure.readings}
        years = set[int]()
        for at, _ in islice(self._meant_at(figure), _LOOKED_AT):
            own = self._at[at]
            if values.isdisjoint(reading.value * own.scale for reading in own.readings):
                continue
            facts = self.places.facts(at, self._names)
            if facts is not None:
                years |= facts.years
            there = None if self.places.is_in_row(at) else self._near_in_sentence(at)
            if there is not None and there.year is not None:
                years.add(there.year)
        return years

    def against(self, figure: Figure, near: Near) -> str:
        """Returns the evidence against the row of the figure; empty without any or with no row."""
        first = next(self._meant_at(figure), None)
        if first is None:
            return ""
        at, meant = first
        return self._doubt(at, meant, near)

    @property
    def lists_tables(self) -> bool:
        """True for a list of tables with the ranges of their columns, which is no row."""
        return self.source.text.startswith("table ") and not self.places.has_rows

    @cached_property
    def _all_words(self) -> frozenset[str]:
        return frozenset(words_of(self.source.text))

    def has_words(self, words: Sequence[str]) -> bool:
        """True if the text has all words."""
        return self._all_words.issuperset(words)

    def extremes_doubted(
        self,
        said: Superlative,
        words: str,
        mentions: Sequence[Mention],
    ) -> Iterator[str]:
        """Yields the reason why each row of some names is not the extreme that a text calls it.

        The reason is empty for a row that may be the extreme.
        """
        for table in self.places.tables:
            if not names_a_measure(said, words, table):
                continue
            for row, own in zip(table.rows, words_of_rows(table), strict=False):
                if all(own.issuperset(mention.words) for mention in mentions):
                    yield self._extreme_doubted(said, words, table, row)

    def doubts(self, figure: Figure, near: Near) -> Iterator[str]:
        """Yields the evidence against each place of the figure, empty for a place without any.

        Counts of rows and digits in names are no places of it.
        """
        for at, meant in islice(self._meant_at(figure), _LOOKED_AT):
            if _ROW_COUNT.match(self.source.text, at):
                continue
            if not (self.places.is_in_row(at) and self.places.facts(at, self._names) is None):
                yield self._doubt(at, meant, near)

    def facts_of(self, figure: Figure) -> list[Facts | None]:
        """Returns the facts about the figure at each place of it; None for one outside tables."""
        places = dict.fromkeys(at for at, _ in islice(self._meant_at(figure), _LOOKED_AT))
        return [self.places.facts(at, self._names) for at in places]

    def _meant_at(self, figure: Figure) -> Iterator[tuple[int, Figure]]:
        """Yields the places of a figure, each with the form of it that is there."""
        for each in (figure, *figure.others):
            for reading in each.readings:
                yield from ((at, each) for at in self._places(each, reading))

    def _doubt(self, at: int, figure: Figure, near: Near) -> str:
        """Returns the evidence against a place: its unit, column or row, or the words beside it."""
        if self.source.facts.adds_total:
            return "the query adds up a row that is the sum of others, too"
        facts = self.places.facts(at, self._names)
        problem = self._names.unknown_unit(figure.unit) or self._other_sign(at, figure, near, facts)
        if problem:
            return problem
        if facts is not None:
            problem = wrong_unit(figure.unit, near, facts)
            problem = problem or contradiction(near, facts, self._names)
            return problem or self._not_the_extreme(near, facts)
        if self.source.kind == "computed":
            return computed_of_others(near, self._operands, figure.unit, self._names)
        if not are_bound(near, self._names):
            return ""
        there = self._near_in_sentence(at)
        return "" if there is None else other_words(near, there, self._names)

    def _other_sign(self, at: int, figure: Figure, near: Near, facts: Facts | None) -> str:
        """Returns the other sign of a figure at this place; empty for none, or if words say it."""
        own = self._at.get(at)
        words = f"{near.own} {near.loose} {near.head}"
        if own is None or not words.strip() or own.is_negative == figure.is_negative:
            return ""
        if self.source.text[at - 1 : at] == "(":  # accounts write a loss so
            return ""
        if facts is not None:
            # A minus that the cell lacks has its reason in its column or in the name of its row.
            cells = facts.row.cells if own.is_negative else facts.row.cells[:1]
            words += f" {facts.column} {' '.join(cells)}"
        is_explained = may_be_unsigned if own.is_negative else may_be_negative
        if is_explained(words):
            return ""
        if own.is_negative:
            return f"it is −{own.digits} there"
        if self.source.kind == "computed":  # which of two figures is taken from the other is free
            return ""
        there = None if facts is not None else self._near_in_sentence(at)
        if there is not None and may_be_negative(f"{there.own} {there.loose}"):
            return ""
        return f"it is {own.digits} there, not −{own.digits}"

    def _not_the_extreme(self, near: Near, facts: Facts) -> str:
        said = None if near.column else superlative_in(near.own)
        if said is None:
            return ""
        return self._extreme_doubted(said, near.own, facts.table, facts.row)

    def _extreme_doubted(
        self,
        said: Superlative,
        words: str,
        table: MarkdownTable,
        row: TableRow,
    ) -> str:
        if self._names.extremes_left == 0:
            return ""
        self._names.extremes_left -= 1
        query = self.places.query
        # After a sorted query, one without an order only looks up the rows that were found.
        if query is not None and query.order is None and self._names.is_sorted:
            query = None
        return not_the_extreme(said, words, table, row, query, self.places.is_cut)

    @cached_property
    def _operands(self) -> list[list[Facts]]:
        """The facts about each operand of a calculation; none for one that is elsewhere, too."""
        # Where a place is read twice, the first reading counts.
        by_place = {figure.start: figure for figure in reversed([*values(self._arguments)])}
        figures = by_place.values()
        operands = [each for each in figures if not is_constant(each.readings[-1].value)]
        return [in_tables(operand, self._data) for operand in operands[:_LOOKED_AT]]

    def _near_in_sentence(self, at: int) -> Near | None:
        if at not in self._near_there:
            self._near_there[at] = near_at(self.source.text, at)
        return self._near_there[at]

    def _places(self, figure: Figure, reading: Reading) -> Iterator[int]:
        """Yields the places of a figure in one reading, in any scale, share and unit."""
        value = reading.value * figure.scale
        tolerance = reading.tolerance * figure.scale
        for scale in self._scales | {figure.scale}:
            yield from self._near(value / scale, tolerance / scale, figure, scale, figure.unit)
        lengths = self._spans.get(figure.unit or "", {})
        if reading.value in lengths:
            yield lengths[reading.value]

        for share, width, unit in self._shares(figure, value, tolerance):
            yield from self._near(share, width, figure, Decimal(1), unit)

        # 4,412 tonnes are 4412 t; were it 4.412 t as well, no unit could be wrong by a thousand.
        if reading != figure.readings[0]:
            return
        for unit, size in multiples(figure.unit or ""):
            named = any(DIMENSIONS[each] == DIMENSIONS[unit] for each in self._mentioned)
            if unit in self._mentioned or (self.source.kind == "computed" and not named):
                yield from self._near(value * size, tolerance * size, figure, Decimal(1), unit)

    def _shares(
        self,
        figure: Figure,
        value: Decimal,
        tolerance: Decimal,
    ) -> Iterator[tuple[Decimal, Decimal, str]]:
        """Yields the other forms of the figure: a ratio, a percentage or a growth factor."""
        if figure.unit == "%":
            yield value / _HUNDRED, tolerance / _HUNDRED, "ratio"
            if self.source.kind == "computed":
                yield 1 + value / _HUNDRED, tolerance / _HUNDRED, "ratio"
                yield 1 - value / _HUNDRED, tolerance / _HUNDRED, "ratio"
        elif figure.unit is None:
            yield value * _HUNDRED, tolerance * _HUNDRED, "in %"

    def _near(
        self,
        value: Decimal,
        tolerance: Decimal,
        figure: Figure,
        scale: Decimal,
        unit: str | None,
    ) -> Iterator[int]:
        """Yields the places of figures within the tolerance, in this scale and in no other unit.

        Those that have the unit come first, and among them the nearest.
        """
        value = abs(value)
        first = bisect_left(self._values, value - tolerance)
        last = bisect_right(self._values, value + tolerance)
        middle = bisect_left(self._values, value)
        nearest = range(max(first, middle - _SORTED), last)[: 2 * _SORTED]

        def rank(index: int) -> tuple[bool, Decimal]:
            has_other_unit = self._figures[index].unit != unit
            return has_other_unit, abs(self._values[index] - value)

        for index in sorted(nearest, key=rank):
            own = self._figures[index]
            is_same = own.digits.replace(",", "") == figure.digits.replace(",", "")
            is_read_so = self._values[index] * figure.scale == value * scale
            if is_same and not is_read_so and _GROUPED.match(figure.text):
                continue  # 49,872 million are not 49,872 thousand, however its comma is read
            is_bare = figure.scale == 1 and scale == 1  # 12.3 of "from 12.3 to 14.5 million"
            is_unscaled = own.scale == 1 and scale in self._scales
            has_scale = own.scale == scale or is_unscaled or is_bare
            has_unit = self._agree(unit, own.unit) or self._is_in_percent(unit, own)
            if has_scale and has_unit:
                yield own.start

    def _is_in_percent(self, unit: str | None, own: Figure) -> bool:
        """True if a percentage is that of a cell in a column of percentages."""
        if unit != "%" or own.unit is not None or not self.places.is_in_row(own.start):
            return False
        facts = self.places.facts(own.start, self._names)
        return facts is not None and "%" in facts.units

    def _agree(self, unit: str | None, own: str | None) -> bool:
        """True if a figure of this source may have the unit; `own` is the one written beside it."""
        # The other forms of a figure, see `_shares`.
        if unit == "ratio":
            return own is None
        if unit == "in %":
            return own == "%"
        if unit is None:
            return True
        if own is not None:
            return not are_apart(unit, own)
        if unit == "%" and not self._gives_shares:
            return False
        if unit in self._units:
            return True

        others = {mentioned for mentioned in self._units if exclude_each_other(unit, mentioned)}
        if self.source.kind == "computed":
            if DIMENSIONS[unit] == "share":  # a share of kilograms is not in kilograms
                return True
            others -= dict(multiples(unit)).keys()  # 21933 / 1000 = 21.933
        return not others


def _is_share(facts: Facts) -> bool:
    """True if the cell, its column or the name of its row speaks of a share."""
    names = [cell for cell in facts.row.cells if not _DIGIT.search(cell)]
    return speaks_of_shares(" | ".join([facts.column, facts.written, *names]))


def in_tables(figure: Figure, reads: Iterable["ReadSource"]) -> list[Facts]:
    """Returns the facts about a figure in each row that has it; none if it is elsewhere, too."""
    found: list[Facts] = []
    for read in reads:
        if read.source.kind != "data":
            continue
        for facts in read.facts_of(figure):
            if facts is None:
                return []
            found.append(facts)
    return found
