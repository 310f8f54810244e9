"""Looking for the claims of a text in its sources.

The rule, in words: a figure is supported by a figure of a source that rounds to it, in its unit if both have one; a
share by the ratio it is, and the other way round; a change in percent by a computed ratio. A quotation is supported
by the same words in one source, an address by the same address. What a tool computed counts only if the figures it
was given are supported, so that no figure becomes true by being multiplied by one; so does a calculation written out.
A figure of a table belongs to its row: another name, year or unit beside it in the text speaks against it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import islice
from typing import Literal, Protocol

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.finding import CheckedClaim
from temporal_supervisor.supervision.contract.result import Unsupported
from temporal_supervisor.supervision.grounding.calculations import as_change, calculated, is_constant
from temporal_supervisor.supervision.grounding.claims import (
    Claim,
    claims,
    pieces,
    plain_address,
    plain_text,
    small_claims,
)
from temporal_supervisor.supervision.grounding.naming.names import KnownWords, unknown_names
from temporal_supervisor.supervision.grounding.rows.contradictions import (
    computed_of_others,
    contradiction,
    mixed_rows,
    other_words,
    wrong_unit,
)
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.queries import read_query
from temporal_supervisor.supervision.grounding.rows.row_facts import Facts, Mention, Names, Places, words_of
from temporal_supervisor.supervision.grounding.rows.superlatives import (
    Superlative,
    has_superlative,
    names_a_measure,
    not_the_extreme,
    superlative_in,
)
from temporal_supervisor.supervision.grounding.units import (
    DIMENSIONS,
    are_apart,
    exclude_each_other,
    mentioned_scales,
    multiples,
)
from temporal_supervisor.supervision.grounding.wording.fenced import without_code
from temporal_supervisor.supervision.grounding.wording.nearby import Near
from temporal_supervisor.supervision.grounding.wording.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.wording.time_words import spans_in
from temporal_supervisor.supervision.grounding.written_figures import Figure, Reading, values

GROUNDING_SOURCES_CHARS = 800_000  # of all texts that they are looked up in: up to 12 s of CPU, off the event loop

_LINE_CHARS = 160  # of a source, around a claim that was found in it: a row of a table, a sentence

BRIEF = "brief"  # the name of a source that is no tool call
CALCULATION = "calculation"  # that of one that the text itself writes out

Found = tuple[str, str, str]
"""The name of the source that has a claim, the line, and the reference of the source."""

SourceKind = Literal["data", "computed"]

_HUNDRED = Decimal(100)
_TWO = 2
_SORTED = 50  # of the figures within the tolerance: so many above and below are compared, the nearest one is shown
_LOOKED_AT = 100  # places of a figure: beyond, one of them may be meant
_SPAN_CHARS = 300  # of a sentence, for its dates
_ENDS = ("\n", ". ", "! ", "? ")
_YEAR_OR_DAY = re.compile(r"\d{1,4}")
_DIFFERENCE = re.compile(r"[-−–/÷]")


@dataclass(frozen=True)
class Source:
    """A text that supports claims. A `computed` one has the `arguments` of its tool; `name` is the call as shown.

    `ref` leads to the text, if it is the output of a tool.
    """

    text: str
    kind: SourceKind = "data"
    arguments: str = ""
    name: str = BRIEF
    ref: str = ""


def check(text: str, sources: Sequence[Source], marks: Collection[str] = (), names: bool = True) -> list[CheckedClaim]:
    """Returns each claim of a text once, in its order, with the line that has it; ends where very many have none.

    Last come the `names` and causes that no source has; those that one has are left out. `marks` are the ids that
    citations may name in brackets.
    """
    text = text[: limits.GROUNDED_CHARS]
    made = [*claims(text, marks)]
    support = Support(sources if text.strip() else [])
    checked, nowhere = [], 0
    for claim, found in looked_up(made, text, support):
        source, line, ref = found or ("", "", "")
        problem = "" if found else support.problem(claim)
        checked.append(CheckedClaim(text=claim.text, source=source, line=line, ref=ref, problem=problem))
        nowhere += not source
        if nowhere == limits.UNSUPPORTED_LISTED:
            return checked
    checked += _small_values_of_others(text, support)
    doubted = [claim.text for claim in checked if not claim.source]
    checked += [claim for claim in support.false_superlatives(text) if not any(item in claim.text for item in doubted)]
    known = {claim.text for claim in checked}
    unknown = unknown_names(text, support.words) if names else []
    return checked + [CheckedClaim(text=name) for name in unknown if name not in known]


def _small_values_of_others(text: str, support: "Support") -> Iterator[CheckedClaim]:
    """Yields the small values that stand in a table in another row or column than the text says."""
    for claim in small_claims(text):
        if problem := support.speaks_against(claim):
            yield CheckedClaim(text=claim.text, problem=problem)


class Finder(Protocol):
    """Where claims are looked for."""

    def find(self, claim: Claim) -> Found | None:
        """Returns where a claim was found; None if nowhere."""

    def mixed(self, calculation: str, near: Near) -> str:
        """Returns why figures should not be calculated with each other; empty if nothing speaks against it."""


def looked_up(made: Iterable[Claim], text: str, finder: Finder) -> Iterator[tuple[Claim, Found | None]]:
    """Yields each claim once with where it was found: by the finder, or as the result of a calculation in its text.

    A claim that is made several times, of several names or years, is found if it is found each time.
    """
    results: dict[str, str] | None = None
    by_text: dict[str, dict[Claim, None]] = {}
    for claim in made:
        by_text.setdefault(claim.text, {})[claim] = None
    for alike in by_text.values():
        first: Found | None = None
        for claim in alike:
            found = finder.find(claim)
            if found is None and claim.figure is not None:
                if results is None:
                    results = calculated(text, partial(_holds, finder))
                found = _calculated(claim, results, finder)
            if found is None:
                yield claim, None
                break
            first = first or found
        else:
            yield next(iter(alike)), first


def _holds(finder: Finder, figure: Figure) -> bool:
    return finder.find(Claim("figure", figure.text, figure)) is not None


def _calculated(claim: Claim, results: dict[str, str], finder: Finder) -> Found | None:
    """Returns the calculation of a text that gives a claim, unless it mixes what the text keeps apart."""
    calculation = results.get(claim.text)
    if calculation is None or finder.mixed(calculation, claim.near or Near()):
        return None
    return CALCULATION, calculation, ""


def unsupported_in_answer(
    text: str,
    sources: Sequence[Source],
    doubtful: Iterable[str] = (),
    marks: Collection[str] = (),
    names: bool = True,
) -> list[Unsupported]:
    """Returns the claims of an answer that no source supports, and what of it is `doubtful`."""
    nowhere = found_nowhere(check(text, sources, marks, names), [item for item in doubtful if item in text])
    return [Unsupported(text=item, where="answer") for item in nowhere]


def found_nowhere(claims: Iterable[CheckedClaim], more: Iterable[str] = ()) -> list[str]:
    """Returns the claims without support, and `more`: each once, and not too many."""
    texts = [*(claim.text for claim in claims if not claim.source), *more]
    return list(dict.fromkeys(texts))[: limits.UNSUPPORTED_SHOWN]


class Support:
    """Sources, read once. Of a source only the beginning is read, of all sources as much as the limits allow."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._names = Names()
        self._accepted = [_Read(source, self._names) for source in _within_limits(sources) if source.kind == "data"]
        for read in self._accepted:
            self._names.learn(read.places)
        data = tuple(self._accepted)
        computed = [_Read(source, self._names, data) for source in _within_limits(sources) if source.kind == "computed"]
        while holding := [read for read in computed if self._operands_hold(read.source)]:
            self._accepted += holding
            computed = [read for read in computed if read not in holding]
        self._accepted.sort(key=lambda read: read.source.name == BRIEF)  # a tool output tells more than the brief

    @cached_property
    def words(self) -> KnownWords:
        """All words of the sources, and the values by which their queries chose rows that there are."""
        reads = [read for read in self._accepted if read.source.kind == "data"]
        asked = [read.places.query.words for read in reads if read.places.query and read.places.has_rows]
        return KnownWords([*(read.source.text for read in reads), *asked])

    def supports(self, claim: Claim) -> bool:
        """True if a source has what is claimed."""
        return self.find(claim) is not None

    def find(self, claim: Claim) -> Found | None:
        """Returns a source that has what is claimed, a tool output if there is one, and its line; None if nowhere."""
        if claim.figure is not None:
            return self._find_figure(claim.figure, claim.near) or _as_span(claim)
        words = [plain_address(claim.text).rstrip("/")] if claim.kind == "address" else pieces(claim.text)
        for read in self._accepted:
            text = read.addresses if claim.kind == "address" else read.plain
            if all(piece in text for piece in words):
                return read.source.name, _line(text, text.find(next(iter(words), ""))), read.source.ref
        return None

    def problem(self, claim: Claim) -> str:
        """Returns what speaks against a claim that was not found: the row of its figure, or what was mixed for it."""
        if claim.figure is None:
            return ""
        against = (read.against(claim.figure, claim.near or Near()) for read in self._accepted)
        return next(filter(None, against), "")

    def speaks_against(self, claim: Claim) -> str:
        """Returns what speaks against each place of a figure, digits within names aside; empty if one may be meant."""
        if claim.figure is None:
            return ""
        near = claim.near or Near()
        doubts = [doubt for read in self._accepted for doubt in read.doubts(claim.figure, near)]
        return doubts[0] if doubts and all(doubts) else ""

    def false_superlatives(self, text: str) -> Iterator[CheckedClaim]:
        """Yields what a text calls the most or least by name, and no row of that name is, in any table that has one."""
        for start, stop in sentence_spans(without_code(text)):
            sentence = text[start:stop]
            said = None if sentence.lstrip().startswith("|") else superlative_in(sentence)
            mentions = self._names.mentions(sentence) if said else []
            if said is None or not mentions or self._is_told(mentions):
                continue
            doubts = [doubt for read in self._accepted for doubt in read.extremes_doubted(said, sentence, mentions)]
            if doubts and all(doubts):
                yield CheckedClaim(text=one_line(sentence.strip(), limits.SENTENCE_BYTES), problem=doubts[0])

    def _is_told(self, mentions: Sequence[Mention]) -> bool:
        """True if a text without tables has superlatives and all names: it may say what the tables do not."""
        read = (each for each in self._accepted if not each.places.has_rows and each.source.name != BRIEF)
        telling = (each for each in read if has_superlative(each.source.text))
        return any(all(each.has_words(mention.words) for mention in mentions) for each in telling)

    def mixed(self, calculation: str, near: Near) -> str:
        """Returns why the two figures of a difference or ratio do not belong together; empty if nothing says so."""
        operands = [figure for figure in values(calculation) if not is_constant(figure.readings[0].value)]
        operands = list({figure.start: figure for figure in reversed(operands)}.values())[::-1]
        if len({figure.digits for figure in operands}) != _TWO or not _DIFFERENCE.search(calculation):
            return ""
        facts = [self._facts_of(figure) for figure in operands]
        return mixed_rows(near, facts, self._names) if all(facts) else ""

    def _facts_of(self, figure: Figure) -> list[Facts]:
        """Returns what is known of a figure in each row that has it; nothing if it stands elsewhere, too."""
        return _in_tables(figure, self._accepted)

    def _find_figure(self, figure: Figure, near: Near | None = None) -> Found | None:
        for read in self._accepted:
            if (at := read.find(figure, near or Near())) is not None:
                return read.source.name, _line(read.source.text, at), read.source.ref
        several = " " in figure.digits and " 0" not in figure.digits  # 14 500 may be two figures, 14 000 is one
        written = [Decimal(part.replace(",", "")) for part in figure.digits.split(" ")] if several else []
        parts = [self._find_figure(_exact(value)) for value in written]
        return parts[0] if parts and all(parts) else None

    def _operands_hold(self, source: Source) -> bool:
        # Where a place is read twice, the first time counts.
        operands = {figure.start: figure.readings[-1].value for figure in reversed([*values(source.arguments)])}
        return all(is_constant(value) or self._has(_exact(value)) for value in operands.values())

    def _has(self, operand: Figure) -> bool:
        return any(map(self._find_figure, (operand, as_change(operand))))


def _as_span(claim: Claim) -> Found | None:
    """Returns the dates beside a time that lie so far apart."""
    return (CALCULATION, claim.between, "") if claim.between else None


def _readings(figure: Figure, is_queried: bool) -> Sequence[Reading]:
    """Returns the readings of a figure of a source; the output of a query groups no digits: 26.474 is no 26474."""
    if is_queried and "." in figure.digits and "," not in figure.digits:
        return figure.readings[-1:]
    return figure.readings


class _Read:
    """The figures of one source, sorted, and its text in the forms that are searched.

    What was computed is in the units of the `data`: 3187450 - 2104310 is no dollars where these name euros alone, and
    it may be in thousands where the head of a column is.
    """

    def __init__(self, source: Source, names: Names, data: Sequence["_Read"] = ()) -> None:
        self.source, self._names, self._data = source, names, data
        self._arguments = source.arguments if source.kind == "computed" else ""
        self.places = Places(source.text, source.arguments if source.kind == "data" else "")
        self.plain = plain_text(source.text)
        self.addresses = plain_address(source.text)
        heads = frozenset[Decimal]().union(*(read.places.scales for read in data))
        self._scales = mentioned_scales(source.text) | heads
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
        self._near_there: dict[int, Near | None] = {}

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        return self.places.units or frozenset().union(*(read._mentioned for read in self._data))

    @cached_property
    def _units(self) -> frozenset[str]:
        """Those of the kinds that a table names once for all its figures, in a column such as `generation_gwh`."""
        return frozenset(unit for unit in self._mentioned if DIMENSIONS[unit] not in ("share", "time"))

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
        """Returns where this source has the figure given, as exactly as that is written; None if it does not.

        A place in a table counts only if nothing near the figure speaks against its row.
        """
        for number, (at, meant) in enumerate(self._meant_at(figure)):
            if number == _LOOKED_AT or not self._doubt(at, meant, near):
                return at
        # The query chose its rows by this year, so they are of it.
        is_asked = figure.unit is None and self.places.has_rows and figure.digits in self.places.asked_years
        return 0 if is_asked else None

    def against(self, figure: Figure, near: Near) -> str:
        """Returns what speaks against the row in which the figure stands; empty if it stands nowhere."""
        at = next(self._meant_at(figure), None)
        return "" if at is None else self._doubt(at[0], at[1], near)

    @cached_property
    def _all_words(self) -> frozenset[str]:
        return frozenset(words_of(self.source.text))

    def has_words(self, words: Sequence[str]) -> bool:
        """True if the text has all words."""
        return self._all_words.issuperset(words)

    def extremes_doubted(self, said: Superlative, words: str, mentions: Sequence[Mention]) -> Iterator[str]:
        """Yields why the rows of some names are not what a text calls them, empty for one that may be."""
        for table in self.places.tables:
            if not names_a_measure(said, words, table):
                continue
            for row in table.rows:
                own = {*words_of(" ".join(row.cells))}
                if all(own.issuperset(mention.words) for mention in mentions):
                    yield self._extreme_doubted(said, words, table, row)

    def doubts(self, figure: Figure, near: Near) -> Iterator[str]:
        """Yields what speaks against each place of the figure, empty where nothing does; digits in names are none."""
        for at, meant in islice(self._meant_at(figure), _LOOKED_AT):
            if not (self.places.is_in_row(at) and self.places.facts(at, self._names) is None):
                yield self._doubt(at, meant, near)

    def facts_of(self, figure: Figure) -> list[Facts | None]:
        """Returns what is known of the figure at each place that has it; None for a place outside of tables."""
        places = dict.fromkeys(at for at, _ in islice(self._meant_at(figure), _LOOKED_AT))
        return [self.places.facts(at, self._names) for at in places]

    def _meant_at(self, figure: Figure) -> Iterator[tuple[int, Figure]]:
        for each in (figure, *figure.others):
            for reading in each.readings:
                yield from ((at, each) for at in self._places(each, reading))

    def _doubt(self, at: int, figure: Figure, near: Near) -> str:
        """Returns what speaks against a place: its column, its row, or the years of its sentence."""
        if unnamed := self._names.unknown_unit(figure.unit):
            return unnamed
        facts = self.places.facts(at, self._names)
        if facts is not None:
            problem = wrong_unit(figure.unit, near, facts) or contradiction(near, facts, self._names)
            return problem or self._not_the_extreme(near, facts)
        if self.source.kind == "computed":
            return computed_of_others(near, self._operands, figure.unit, self._names)
        there = self._near_in_sentence(at)
        return "" if there is None else other_words(near, there, self._names)

    def _not_the_extreme(self, near: Near, facts: Facts) -> str:
        said = None if near.column else superlative_in(near.own)
        if said is None:
            return ""
        return self._extreme_doubted(said, near.own, facts.table, facts.row)

    def _extreme_doubted(self, said: Superlative, words: str, table: MarkdownTable, row: TableRow) -> str:
        query = self.places.query
        is_second = query is not None and query.order is None and self._names.is_sorted  # it looks up what was found
        return not_the_extreme(said, words, table, row, None if is_second else query, self.places.is_cut)

    @cached_property
    def _operands(self) -> list[list[Facts]]:
        """What is known of each figure that was computed with; nothing of one that stands outside of tables, too."""
        given = {figure.start: figure for figure in reversed([*values(self._arguments)])}
        operands = [figure for figure in given.values() if not is_constant(figure.readings[-1].value)]
        return [_in_tables(figure, self._data) for figure in operands[:_LOOKED_AT]]

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
        """Yields where the source has figures within the tolerance, in this scale and no other unit, nearest first."""
        value = abs(value)
        first, last = bisect_left(self._values, value - tolerance), bisect_right(self._values, value + tolerance)
        nearest = range(max(first, bisect_left(self._values, value) - _SORTED), last)[: 2 * _SORTED]
        for index in sorted(nearest, key=lambda at: (self._figures[at].unit != unit, abs(self._values[at] - value))):
            own = self._figures[index]
            bare = figure.scale == 1 and scale == 1  # 12.3 of "from 12.3 to 14.5 million"
            unscaled = own.scale == 1 and scale in self._scales
            if (own.scale == scale or unscaled or bare) and self._agree(unit, own.unit):
                yield own.start

    def _agree(self, unit: str | None, own: str | None) -> bool:
        if unit in ("ratio", "in %"):  # another form of what was written
            return own == ("%" if unit == "in %" else None)
        if unit is None:
            return True
        if own is not None:
            return not are_apart(unit, own)
        others = {mentioned for mentioned in self._units if exclude_each_other(unit, mentioned)}
        if self.source.kind == "computed":  # 21933 / 1000 = 21.933; a share of kilograms is none
            others = set() if DIMENSIONS[unit] == "share" else others - dict(multiples(unit)).keys()
        return not others or unit in self._units


def _in_tables(figure: Figure, reads: Iterable["_Read"]) -> list[Facts]:
    """Returns what is known of a figure in each row that has it; nothing if it stands elsewhere, too."""
    facts = [fact for read in reads if read.source.kind == "data" for fact in read.facts_of(figure)]
    return [] if None in facts else [fact for fact in facts if fact is not None]


def _near_at(text: str, at: int) -> Near | None:
    """Returns the words near a figure of a source; None if it is no figure that texts would claim."""
    start = max(text.rfind(end, 0, at) for end in _ENDS) + 1
    stop = min((found for end in _ENDS if (found := text.find(end, at)) >= 0), default=len(text))
    sentence = text[max(start, at - _SPAN_CHARS) : min(stop + 1, at + _SPAN_CHARS)]
    offset = max(start, at - _SPAN_CHARS)
    return next((claim.near for claim in claims(sentence) if claim.figure and claim.figure.start == at - offset), None)


def _within_limits(sources: Sequence[Source]) -> Iterator[Source]:
    room = GROUNDING_SOURCES_CHARS
    for source in sources:
        text = source.text[: min(room, limits.GROUNDED_CHARS)]
        room -= len(text)
        if text:
            yield replace(source, text=text, arguments=source.arguments[: limits.GROUNDED_CHARS])


def _line(text: str, at: int) -> str:
    """Returns the line of a text that has this place; of a long line what is around it."""
    before, after = text[:at].rpartition("\n")[2], text[at:].partition("\n")[0]
    if len(before) + len(after) > _LINE_CHARS:
        before = before[-_LINE_CHARS // 2 :]
    return one_line(f"{before}{after}"[:_LINE_CHARS], limits.SENTENCE_BYTES)


def _exact(value: Decimal) -> Figure:
    decimals = len(f"{value:f}".partition(".")[2])
    tolerance = Decimal(10) ** -decimals / 2
    return Figure(str(value), (Reading(value, tolerance),), Decimal(1), None, 0, 0, str(value))
