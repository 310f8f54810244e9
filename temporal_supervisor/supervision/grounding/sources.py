"""The sources of a text, read once: their figures, and where in them a figure may stand."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice
from typing import Literal

from temporal_supervisor.supervision.base.prompt_marks import ADDED_UP_TOTAL
from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.calculations import is_constant
from temporal_supervisor.supervision.grounding.claims import (
    claims,
    plain_address,
    plain_text,
)
from temporal_supervisor.supervision.grounding.rows.contradictions import (
    computed_of_others,
    contradiction,
    other_words,
    wrong_unit,
)
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.queries import read_query
from temporal_supervisor.supervision.grounding.rows.row_facts import Facts, Mention, Names, Places, words_of
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
from temporal_supervisor.supervision.grounding.wording.nearby import Near
from temporal_supervisor.supervision.grounding.wording.time_words import spans_in
from temporal_supervisor.supervision.grounding.written_figures import Figure, Reading, values

BRIEF = "brief"  # the name of a source that is no tool call

SourceKind = Literal["data", "computed"]

_HUNDRED = Decimal(100)
_TWO = 2
# Of the figures within the tolerance: so many above and below are compared, the nearest one is
# shown.
_SORTED = 50
_LOOKED_AT = 100  # places of a figure: beyond, one of them may be meant
_SPAN_CHARS = 300  # of a sentence, for its dates
_ENDS = ("\n", ". ", "! ", "? ")
_ROW_COUNT = re.compile(r"\d+ rows?\b")  # how the tools for tables end their output
_GROUPED = re.compile(
    r"\D{0,4}\d{1,3}(?:,\d{3})+\s?-?(?:thousand|million|billion|trillion|bn|[mk])\b",
    re.IGNORECASE,
)
_HUNDRED_IN_TEXT = re.compile(r"(?<![\d.])100(?![\d.])")
_DIVISOR = re.compile(r"/\s?\(?\s?(\d{1,24}(?:\.\d{1,24})?)")
_DIGIT = re.compile(r"\d")
_YEAR_OR_DAY = re.compile(r"\d{1,4}")


@dataclass(frozen=True)
class Source:
    """A text that supports claims.

    A `computed` one has the `arguments` of its tool; `name` is the call as shown. `ref` leads to
    the text, if it is the output of a tool.
    """

    text: str
    kind: SourceKind = "data"
    arguments: str = ""
    name: str = BRIEF
    ref: str = ""


def _readings(figure: Figure, is_queried: bool) -> Sequence[Reading]:
    """Returns the readings of a figure of a source; the output of a query groups no digits: 26.474 is no 26474."""
    if is_queried and "." in figure.digits and "," not in figure.digits:
        return figure.readings[-1:]
    return figure.readings


class Read:
    """The figures of one source, sorted, and its text in the forms that are searched.

    What was computed is in the units of the `data`: 3187450 - 2104310 is no dollars where these
    name euros alone, and it may be in thousands where the head of a column is. So may all figures
    where a source says in which of the `scales` amounts are given.
    """

    def __init__(
        self,
        source: Source,
        names: Names,
        data: Sequence["Read"] = (),
        scales: frozenset[Decimal] = frozenset(),
    ) -> None:
        self.source, self._names, self._data = source, names, data
        self._arguments = source.arguments if source.kind == "computed" else ""
        self.places = Places(source.text, source.arguments if source.kind == "data" else "")
        self.plain = plain_text(source.text)
        self.addresses = plain_address(source.text)
        heads = frozenset[Decimal]().union(*(read.places.scales for read in data))
        self._scales = mentioned_scales(source.text) | heads | scales
        # A tool that computes shows what it was given: that stands elsewhere, or nowhere.
        given = {reading.value for each in values(self._arguments) for reading in each.readings}
        is_queried = read_query(source.arguments) is not None
        read = [
            (reading.value, each)
            for each in values(source.text)
            for reading in _readings(each, is_queried)
            if reading.value not in given
        ]
        read.sort(key=lambda item: item[0])
        self._values = [value for value, _ in read]
        self._figures = [figure for _, figure in read]
        self._at = {figure.start: figure for figure in self._figures}
        self._near_there: dict[int, Near | None] = {}

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        return self.places.units or frozenset().union(*(read._mentioned for read in self._data))

    @cached_property
    def _units(self) -> frozenset[str]:
        """The units mentioned that a table names once for all figures, as in `generation_gwh`."""
        return frozenset(unit for unit in self._mentioned if DIMENSIONS[unit] not in ("share", "time"))

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
        """By units of time how long it is between two dates of one sentence, with the place of the sentence."""
        spans: dict[str, dict[Decimal, int]] = {}
        for start, stop in sentence_spans(self.source.text):
            sentence = self.source.text[start:stop]
            if sentence.lstrip().startswith("|") or len(_YEAR_OR_DAY.findall(sentence[:_SPAN_CHARS])) < _TWO:
                continue
            for unit, lengths in spans_in([sentence[:_SPAN_CHARS]]).items():
                spans.setdefault(unit, {}).update(dict.fromkeys(map(Decimal, lengths), start))
        return spans

    def find(self, figure: Figure, near: Near) -> int | None:
        """Returns the place of the given figure in this source, as exact as it is written, or None.

        A place in a table counts only if nothing near the figure speaks against its row.
        """
        for number, (at, meant) in enumerate(self._meant_at(figure)):
            if number == _LOOKED_AT or not self._doubt(at, meant, near):
                return at
        # The query chose its rows by this year, so they are of it.
        is_asked = figure.unit is None and self.places.has_rows and figure.digits in self.places.asked_years
        return 0 if is_asked else None

    def bound_years(self, figure: Figure) -> set[int]:
        """Returns the years to which the text binds this very number, by its words or its place."""
        values = {reading.value * figure.scale for reading in figure.readings}
        years = set[int]()
        for at, _ in islice(self._meant_at(figure), _LOOKED_AT):
            own = self._at[at]
            if values.isdisjoint(reading.value * own.scale for reading in own.readings):
                continue
            facts = self.places.facts(at, self._names)
            there = None if self.places.is_in_row(at) else self._near_in_sentence(at)
            years |= facts.years if facts is not None else frozenset()
            years |= {there.year} if there is not None and there.year is not None else set()
        return years

    def against(self, figure: Figure, near: Near) -> str:
        """Returns the evidence against the row of the figure; empty without any or with no row."""
        at = next(self._meant_at(figure), None)
        return "" if at is None else self._doubt(at[0], at[1], near)

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

    def extremes_doubted(self, said: Superlative, words: str, mentions: Sequence[Mention]) -> Iterator[str]:
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
        for each in (figure, *figure.others):
            for reading in each.readings:
                yield from ((at, each) for at in self._places(each, reading))

    def _doubt(self, at: int, figure: Figure, near: Near) -> str:
        """Returns the evidence against a place: its unit, column or row, or the words beside it."""
        if ADDED_UP_TOTAL in self.source.text and self.places.query is not None:
            return "the query adds up a row that is the sum of others, too"
        if unnamed := self._names.unknown_unit(figure.unit):
            return unnamed
        facts = self.places.facts(at, self._names)
        if other_sign := self._other_sign(at, figure, near, facts):
            return other_sign
        if facts is not None:
            problem = wrong_unit(figure.unit, near, facts) or contradiction(near, facts, self._names)
            return problem or self._not_the_extreme(near, facts)
        if self.source.kind == "computed":
            return computed_of_others(near, self._operands, figure.unit, self._names)
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

    def _extreme_doubted(self, said: Superlative, words: str, table: MarkdownTable, row: TableRow) -> str:
        if self._names.extremes_left == 0:
            return ""
        self._names.extremes_left -= 1
        query = self.places.query
        # It looks up what was found.
        is_second = query is not None and query.order is None and self._names.is_sorted
        return not_the_extreme(said, words, table, row, None if is_second else query, self.places.is_cut)

    @cached_property
    def _operands(self) -> list[list[Facts]]:
        """The facts about each figure computed with; none for one that also stands elsewhere."""
        given = {figure.start: figure for figure in reversed([*values(self._arguments)])}
        operands = [figure for figure in given.values() if not is_constant(figure.readings[-1].value)]
        return [in_tables(figure, self._data) for figure in operands[:_LOOKED_AT]]

    def _near_in_sentence(self, at: int) -> Near | None:
        if at not in self._near_there:
            self._near_there[at] = _near_at(self.source.text, at)
        return self._near_there[at]

    def _places(self, figure: Figure, reading: Reading) -> Iterator[int]:
        value, tolerance = reading.value * figure.scale, reading.tolerance * figure.scale
        for scale in self._scales | {figure.scale}:
            yield from self._near(value / scale, tolerance / scale, figure, scale, figure.unit)
        lengths = self._spans.get(figure.unit or "", {})
        if reading.value in lengths:
            yield lengths[reading.value]
        for share, width, unit in self._shares(figure, value, tolerance):
            yield from self._near(share, width, figure, Decimal(1), unit)
        # 4,412 tonnes are 4412 t; were it 4.412 t as well, no unit could be wrong by a thousand.
        for unit, size in multiples(figure.unit or "") if reading == figure.readings[0] else ():
            named = any(DIMENSIONS[each] == DIMENSIONS[unit] for each in self._mentioned)
            if unit in self._mentioned or (self.source.kind == "computed" and not named):
                yield from self._near(value * size, tolerance * size, figure, Decimal(1), unit)

    def _shares(self, figure: Figure, value: Decimal, tolerance: Decimal) -> Iterator[tuple[Decimal, Decimal, str]]:
        """Yields the figure as the ratio, the percentage or the growth factor that it also is."""
        if figure.unit == "%":
            yield value / _HUNDRED, tolerance / _HUNDRED, "ratio"
            if self.source.kind == "computed":
                yield 1 + value / _HUNDRED, tolerance / _HUNDRED, "ratio"
                yield 1 - value / _HUNDRED, tolerance / _HUNDRED, "ratio"
        elif figure.unit is None:
            yield value * _HUNDRED, tolerance * _HUNDRED, "in %"

    def _near(
        self, value: Decimal, tolerance: Decimal, figure: Figure, scale: Decimal, unit: str | None
    ) -> Iterator[int]:
        """Yields the places of figures within the tolerance, in this scale and in no other unit.

        Those that have the unit come first, and among them the nearest.
        """
        value = abs(value)
        first, last = bisect_left(self._values, value - tolerance), bisect_right(self._values, value + tolerance)
        nearest = range(max(first, bisect_left(self._values, value) - _SORTED), last)[: 2 * _SORTED]
        for index in sorted(nearest, key=lambda at: (self._figures[at].unit != unit, abs(self._values[at] - value))):
            own = self._figures[index]
            is_same = own.digits.replace(",", "") == figure.digits.replace(",", "")
            is_read_so = self._values[index] * figure.scale == value * scale
            if is_same and not is_read_so and _GROUPED.match(figure.text):
                continue  # 49,872 million are not 49,872 thousand, however its comma is read
            bare = figure.scale == 1 and scale == 1  # 12.3 of "from 12.3 to 14.5 million"
            unscaled = own.scale == 1 and scale in self._scales
            agree = self._agree(unit, own.unit) or self._is_in_percent(unit, own)
            if (own.scale == scale or unscaled or bare) and agree:
                yield own.start

    def _is_in_percent(self, unit: str | None, own: Figure) -> bool:
        """True if a percentage is that of a cell in a column of percentages."""
        if unit != "%" or own.unit is not None or not self.places.is_in_row(own.start):
            return False
        facts = self.places.facts(own.start, self._names)
        return facts is not None and "%" in facts.units

    def _agree(self, unit: str | None, own: str | None) -> bool:
        if unit in ("ratio", "in %"):  # another form of what was written
            return own == ("%" if unit == "in %" else None)
        if unit is None:
            return True
        if own is not None:
            return not are_apart(unit, own)
        if unit == "%" and not self._gives_shares:
            return False
        others = {mentioned for mentioned in self._units if exclude_each_other(unit, mentioned)}
        if self.source.kind == "computed":  # 21933 / 1000 = 21.933; a share of kilograms is none
            others = set() if DIMENSIONS[unit] == "share" else others - dict(multiples(unit)).keys()
        return not others or unit in self._units


def _is_share(facts: Facts) -> bool:
    """True if the cell, its column or the name of its row speaks of a share."""
    names = [cell for cell in facts.row.cells if not _DIGIT.search(cell)]
    return speaks_of_shares(" | ".join([facts.column, facts.written, *names]))


def in_tables(figure: Figure, reads: Iterable["Read"]) -> list[Facts]:
    """Returns the facts about a figure in each row that has it; none if it is elsewhere, too."""
    facts = [fact for read in reads if read.source.kind == "data" for fact in read.facts_of(figure)]
    return [] if None in facts else [fact for fact in facts if fact is not None]


def _near_at(text: str, at: int) -> Near | None:
    """Returns the words near a figure of a source.

    None if it is no figure that texts would claim.
    """
    start = max(text.rfind(end, 0, at) for end in _ENDS) + 1
    ends = [text.find(end, at) for end in _ENDS]
    stop = min((end for end in ends if end >= 0), default=len(text))
    sentence = text[max(start, at - _SPAN_CHARS) : min(stop + 1, at + _SPAN_CHARS)]
    offset = max(start, at - _SPAN_CHARS)
    return next((claim.near for claim in claims(sentence) if claim.figure and claim.figure.start == at - offset), None)
