"""Looking for the claims of a text in its sources.

The rule, in words: a figure is supported by a figure of a source that rounds to it, in its unit if
both have one; a share by the ratio it is, and the other way round; a change in percent by a
computed ratio. A quotation is supported by the same words in one source, an address by the same
address. What a tool computed counts only if the figures it was given are supported, so that no
figure becomes true by being multiplied by one; so does a calculation written out. A figure of a
table belongs to its row: another name, year or unit beside it in the text speaks against it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from itertools import chain, islice

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.finding import CheckedClaim
from temporal_supervisor.supervision.contract.result import Unsupported
from temporal_supervisor.supervision.grounding.calculations import (
    as_change,
    is_constant,
    wrong_signs,
)
from temporal_supervisor.supervision.grounding.claim_lookup import CALCULATION, Found, looked_up
from temporal_supervisor.supervision.grounding.claims import (
    Claim,
    claims,
    pieces,
    plain_address,
    small_claims,
)
from temporal_supervisor.supervision.grounding.naming.names import KnownWords, unknown_names
from temporal_supervisor.supervision.grounding.rows.contradictions import mixed_rows
from temporal_supervisor.supervision.grounding.rows.joined_names import parted_names
from temporal_supervisor.supervision.grounding.rows.named_cells import wrong_cells
from temporal_supervisor.supervision.grounding.rows.row_counts import unreported, wrong_counts
from temporal_supervisor.supervision.grounding.rows.row_facts import Mention, Names
from temporal_supervisor.supervision.grounding.rows.superlatives import (
    has_superlative,
    superlative_in,
)
from temporal_supervisor.supervision.grounding.sources import BRIEF, ReadSource, Source, in_tables
from temporal_supervisor.supervision.grounding.units import declared_scales
from temporal_supervisor.supervision.grounding.wording.code_fences import without_code
from temporal_supervisor.supervision.grounding.wording.directions import backward_years, wrong_turns
from temporal_supervisor.supervision.grounding.wording.listed_extremes import (
    false_listed_extremes,
)
from temporal_supervisor.supervision.grounding.wording.near_words import Near
from temporal_supervisor.supervision.grounding.written_figures import (
    Figure,
    Reading,
    values,
    whole_values,
)

# Characters of all sources together: up to 12 s of CPU, off the event loop.
GROUNDING_SOURCES_CHARS = 800_000
_SMALL_VALUES = 60  # of a text that are compared with rows
_LINE_CHARS = 160  # of a source, around a claim that was found in it: a row of a table, a sentence
_DIFFERENCE = re.compile(r"[-−–/÷]")  # a difference or a ratio: "9 - 4", "9 / 4"; not "9 + 4"


def check(
    text: str,
    sources: Sequence[Source],
    marks: Collection[str] = (),
    names: bool = True,
) -> list[CheckedClaim]:
    """Returns each claim of a text once, in its order, with the line that has it.

    Ends where very many have none. Last come the `names` and causes that no source has; those that
    one has are left out. `marks` are the ids that citations may name in brackets.
    """
    text = text[: limits.GROUNDED_CHARS]
    support = Support(sources if text.strip() else [], are_all=True)
    checked: list[CheckedClaim] = []
    nowhere = 0
    for claim, found in looked_up([*claims(text, marks)], text, support):
        checked.append(_checked(claim, found, support))
        if not checked[-1].source:
            nowhere += 1
        if nowhere == limits.UNSUPPORTED_LISTED:
            return checked

    checked += _small_values_of_others(text, support)
    checked += _wrong_directions(text, sources)
    checked += support.parted_names(text)
    checked += support.wrong_counts(text)

    # A sentence with a claim that is doubted already is not listed once more.
    doubted = [claim.text for claim in checked if not claim.source]
    wrong_sentences = [
        *support.wrong_cells(text),
        *support.false_superlatives(text),
        *support.false_listed_extremes(text),
    ]
    for sentence in wrong_sentences:
        if not any(item in sentence.text for item in doubted):
            checked.append(sentence)

    known = {claim.text for claim in checked}
    for name in unknown_names(text, support.words) if names else []:
        if name not in known:
            checked.append(CheckedClaim(text=name))
    return checked


def _checked(claim: Claim, found: Found | None, support: "Support") -> CheckedClaim:
    """Returns the verdict on a claim, with the line that supports it or the problem with it."""
    if found is None:
        return CheckedClaim(text=claim.text, problem=support.problem(claim))
    source, line, ref = found
    return CheckedClaim(text=claim.text, source=source, line=line, ref=ref)


def _small_values_of_others(text: str, support: "Support") -> Iterator[CheckedClaim]:
    """Yields the small values that a table has in another row or column than the text."""
    for claim in islice(small_claims(text), _SMALL_VALUES):
        problem = support.speaks_against(claim)
        if problem:
            yield CheckedClaim(text=claim.text, problem=problem)


def _wrong_directions(text: str, sources: Sequence[Source]) -> Iterator[CheckedClaim]:
    """Yields the claims that contradict themselves in the direction of a change.

    They are a result whose sign is not its calculation's, as in "4 - 6 = 2", a rise that ends lower
    than it began, as in "rose from 6 to 4", and a span whose later year comes first.
    """
    plain = without_code(text)
    for result, calculation in wrong_signs(plain):
        yield CheckedClaim(text=result, problem=f"{calculation} has the other sign")
    for change, reason in wrong_turns(plain):
        yield _doubted(change, reason)
    for years in backward_years(plain):
        if not any(years in source.text for source in sources):
            yield CheckedClaim(text=years, problem="the later year comes first")


def _doubted(sentence: str, reason: str) -> CheckedClaim:
    """Returns a sentence, in one line, as a claim with a problem."""
    return CheckedClaim(text=one_line(sentence, limits.SENTENCE_BYTES), problem=reason)


def unsupported_in_answer(
    text: str,
    sources: Sequence[Source],
    doubtful: Iterable[str] = (),
    marks: Collection[str] = (),
    names: bool = True,
) -> list[Unsupported]:
    """Returns the claims of an answer that no source supports, and what of it is `doubtful`."""
    repeated = [item for item in doubtful if item in text]
    nowhere = found_nowhere(check(text, sources, marks, names), repeated)
    return [Unsupported(text=item, where="answer") for item in nowhere]


def found_nowhere(claims: Iterable[CheckedClaim], more: Iterable[str] = ()) -> list[str]:
    """Returns the claims without support, and `more`: each once, and not too many."""
    texts = [claim.text for claim in claims if not claim.source]
    return list(dict.fromkeys([*texts, *more]))[: limits.UNSUPPORTED_SHOWN]


class Support:
    """Sources, read once.

    Of a source only the beginning is read, of all sources as much as the limits allow.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        scales: frozenset[Decimal] = frozenset(),
        *,
        are_all: bool = False,
    ) -> None:
        """Reads the sources. `scales` are those that other texts declare for amounts.

        They `are_all` if nothing else was read, which might name a unit.
        """
        self._names = Names(have_all=are_all)
        whole = [*_within_limits(sources)]
        for source in whole:
            scales = scales.union(declared_scales(source.text))

        given = [source for source in whole if source.kind == "data"]
        self._accepted = [ReadSource(source, self._names, scales=scales) for source in given]
        for read in self._accepted:
            self._names.learn(read.places)
        data = tuple(self._accepted)

        # Computed from figures that hold: an output may be the operand of another one.
        derived = [source for source in whole if source.kind == "computed"]
        computed = [ReadSource(source, self._names, data, scales) for source in derived]
        while holding := [read for read in computed if self._operands_hold(read.source)]:
            self._accepted += holding
            computed = [read for read in computed if read not in holding]

        # A tool output tells more than the brief.
        self._accepted.sort(key=lambda read: read.source.name == BRIEF)

    @cached_property
    def words(self) -> KnownWords:
        """The words of all sources, and those of their queries that returned rows.

        A query that found nothing proves no name in it.
        """
        data = [read for read in self._accepted if read.source.kind == "data"]
        texts = [read.source.text for read in data]
        for read in data:
            if read.places.query and read.places.has_rows:
                texts.append(read.places.query.words)
        return KnownWords(texts)

    def supports(self, claim: Claim) -> bool:
        """True if a source has what is claimed."""
        return self.find(claim) is not None

    def find(self, claim: Claim) -> Found | None:
        """Returns a source that has what is claimed, a tool output if there is one, and its line.

        None if nowhere.
        """
        if claim.figure is not None:
            return self._find_figure(claim.figure, claim.near) or _as_span(claim)
        is_address = claim.kind == "address"
        words = [plain_address(claim.text).rstrip("/")] if is_address else pieces(claim.text)
        first = next(iter(words), "")
        for read in self._accepted:
            text = read.addresses if is_address else read.plain
            if all(piece in text for piece in words):
                return read.source.name, _line(text, text.find(first)), read.source.ref
        return None

    def problem(self, claim: Claim) -> str:
        """Returns the evidence against a claim that was not found; empty without any.

        It comes from the row of its figure, or from the figures that this was computed from.
        """
        if claim.figure is None:
            return ""
        for read in self._accepted:
            problem = read.against(claim.figure, claim.near or Near())
            if problem:
                return problem
        years = self._other_years(claim.figure, claim.near)
        if not years:
            return ""
        return f"it stands beside {', '.join(map(str, sorted(years)))}"

    def speaks_against(self, claim: Claim) -> str:
        """Returns the evidence against a figure if each of its places has some; empty otherwise.

        Digits within names are no places of it.
        """
        if claim.figure is None:
            return ""
        doubts: list[str] = []
        for read in self._accepted:
            doubts += read.doubts(claim.figure, claim.near or Near())
        return doubts[0] if doubts and all(doubts) else ""

    def false_superlatives(self, text: str) -> Iterator[CheckedClaim]:
        """Yields the sentences that call a name the most or least, while no row of that name is.

        Only tables that have such a row count.
        """
        for start, stop in sentence_spans(without_code(text)):
            sentence = text[start:stop]
            if sentence.lstrip().startswith("|") or self._names.extremes_left == 0:
                continue
            said = superlative_in(sentence)
            mentions = self._names.mentions(sentence) if said else []
            if said is None or not mentions or self._is_told(mentions):
                continue
            doubts: list[str] = []
            for read in self._accepted:
                doubts += read.extremes_doubted(said, sentence, mentions)
            if doubts and all(doubts):
                yield _doubted(sentence.strip(), doubts[0])

    def false_listed_extremes(self, text: str) -> Iterator[CheckedClaim]:
        """Yields the sentences that call a figure the most or least of a list, and it is not.

        The lists are sentences of texts, such as findings, with several figures of one unit.
        """
        texts = [read.source.text for read in self._prose]
        for sentence, reason in false_listed_extremes(without_code(text), texts):
            yield CheckedClaim(text=one_line(sentence, limits.SENTENCE_BYTES), problem=reason)

    def parted_names(self, text: str) -> Iterator[CheckedClaim]:
        """Yields the sentences that join two names of a table which no row has together.

        Names that a text without tables has, too, may belong together for another reason.
        """
        others = [read for read in self._prose if read.source.name != BRIEF]
        if not all(read.places.has_rows for read in others):
            return
        whole = [read.places.tables for read in self._accepted if not read.places.is_cut]
        tables = [*chain.from_iterable(whole)]
        for sentence, reason in parted_names(without_code(text), tables, self._names):
            yield _doubted(sentence, reason)

    def wrong_cells(self, text: str) -> Iterator[CheckedClaim]:
        """Yields the sentences that give a named cell of a table another figure."""
        tables = [*chain.from_iterable(read.places.tables for read in self._accepted)]
        for sentence, reason in wrong_cells(without_code(text), tables):
            yield _doubted(sentence, reason)

    def wrong_counts(self, text: str) -> Iterator[CheckedClaim]:
        """Yields the sentences with another number than a query counted for their names.

        If one query gave one figure, and nothing else was read, the text has to tell that one.
        """
        queried = [read for read in self._accepted if read.places.query]
        asked = [(read.places, read.source.arguments) for read in queried]
        plain = without_code(text)
        found = [*wrong_counts(plain, asked)]
        if not found and len(queried) == 1 and not self._has_others:
            sources = [read.source for read in self._accepted]
            asked_for = " ".join(source.text for source in sources if source.name == BRIEF)
            another = unreported(plain, asked_for, queried[0].places)
            found = [another] if another else []
        for sentence, reason in found:
            yield _doubted(sentence, reason)

    @property
    def _has_others(self) -> bool:
        """True if there is more than the brief, lists of tables, and queries."""
        others = [each for each in self._accepted if each.source.name != BRIEF]
        return any(each.places.query is None and not each.lists_tables for each in others)

    @cached_property
    def _prose(self) -> list[ReadSource]:
        """The texts of others: neither queries nor lists of tables, nor computed."""
        data = [read for read in self._accepted if read.source.kind == "data"]
        asked_for = [read for read in data if read.places.query is None]
        return [read for read in asked_for if not read.lists_tables]

    def _is_told(self, mentions: Sequence[Mention]) -> bool:
        """True if a text without tables has superlatives and all names.

        It may say what the tables do not.
        """
        for read in self._accepted:
            if read.places.has_rows or read.source.name == BRIEF:
                continue
            has_names = all(read.has_words(mention.words) for mention in mentions)
            if has_names and has_superlative(read.source.text):
                return True
        return False

    def mixed(self, calculation: str, near: Near) -> str:
        """Returns the reason not to calculate two figures with each other; empty without one."""
        figures = whole_values(calculation)
        operands = [figure for figure in figures if not is_constant(figure.readings[0].value)]
        # One that is written twice, as in a change over its first value, is looked up once.
        operands = list({figure.digits: figure for figure in operands}.values())
        if len(operands) != 2 or not _DIFFERENCE.search(calculation):
            return ""
        facts = [in_tables(figure, self._accepted) for figure in operands]
        return mixed_rows(near, facts, self._names) if all(facts) else ""

    def _find_figure(self, figure: Figure, near: Near | None = None) -> Found | None:
        """Returns the first place that has a figure, unless sources bind it to another year."""
        if self._other_years(figure, near):
            return None
        for read in self._accepted:
            # The ranges in a list of tables tell nothing of a row that a query has shown.
            if read.lists_tables and self._stands_in_rows(figure):
                continue
            at = read.find(figure, near or Near())
            if at is not None:
                return read.source.name, _line(read.source.text, at), read.source.ref

        # 14 500 may be two figures, 14 000 is one.
        if " " not in figure.digits or " 0" in figure.digits:
            return None
        written = [Decimal(part.replace(",", "")) for part in figure.digits.split(" ")]
        parts = [self._find_figure(_exact(value)) for value in written]
        return parts[0] if all(parts) else None

    def _stands_in_rows(self, figure: Figure) -> bool:
        """True if a query has shown a row with a figure."""
        for read in self._accepted:
            has_shown = read.places.query and read.places.has_rows
            if has_shown and any(facts is not None for facts in read.facts_of(figure)):
                return True
        return False

    def _other_years(self, figure: Figure, near: Near | None) -> set[int]:
        """Returns the years to which the sources bind a number that a text binds to another one."""
        if near is None or near.year is None:
            return set()
        years: set[int] = set()
        for read in self._accepted:
            years |= read.bound_years(figure)
        return set() if near.year in years else years

    def _operands_hold(self, source: Source) -> bool:
        """True if each figure that an output was computed from is a constant or has a source."""
        operands: dict[int, Decimal] = {}
        for figure in values(source.arguments):
            # Where a place is read twice, the first time counts.
            operands.setdefault(figure.start, figure.readings[-1].value)
        unknown = (value for value in operands.values() if not is_constant(value))
        return all(self._has_operand(_exact(value)) for value in unknown)

    def _has_operand(self, operand: Figure) -> bool:
        """True if a source has a figure, or the change in percent that it makes as a factor."""
        return any(map(self._find_figure, (operand, as_change(operand))))


def _as_span(claim: Claim) -> Found | None:
    """Returns the dates beside a time that lie so far apart."""
    return (CALCULATION, claim.between, "") if claim.between else None


def _within_limits(sources: Sequence[Source]) -> Iterator[Source]:
    """Yields the sources, cut to the limits of one and of all."""
    room = GROUNDING_SOURCES_CHARS
    for source in sources:
        text = source.text[: min(room, limits.GROUNDED_CHARS)]
        room -= len(text)
        if text:
            yield replace(source, text=text, arguments=source.arguments[: limits.GROUNDED_CHARS])


def _line(text: str, at: int) -> str:
    """Returns the line of a text that has this place; of a long line what is around it."""
    before = text[:at].rpartition("\n")[2]
    after = text[at:].partition("\n")[0]
    if len(before) + len(after) > _LINE_CHARS:
        before = before[-_LINE_CHARS // 2 :]
    return one_line(f"{before}{after}"[:_LINE_CHARS], limits.SENTENCE_BYTES)


def _exact(value: Decimal) -> Figure:
    """Returns a figure that a source has to have with all decimals of a value."""
    decimals = len(f"{value:f}".partition(".")[2])
    tolerance = Decimal(10) ** -decimals / 2
    return Figure(str(value), (Reading(value, tolerance),), Decimal(1), None, 0, 0, str(value))
