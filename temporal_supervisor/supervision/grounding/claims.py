"""Claims of a text that can be looked up: its figures, quotations and addresses."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from temporal_supervisor.supervision.base.text import blanks_for
from temporal_supervisor.supervision.grounding.units import is_time
from temporal_supervisor.supervision.grounding.wording.code_fences import without_code
from temporal_supervisor.supervision.grounding.wording.near_words import (
    Extent,
    Near,
    bound_year,
    surroundings,
)
from temporal_supervisor.supervision.grounding.wording.time_words import date_spans, spans_in
from temporal_supervisor.supervision.grounding.written_figures import Figure, figures, small_values

ClaimKind = Literal["figure", "quotation", "address"]

# „So" with a straight closing mark is how many write German on a keyboard of another language.
_QUOTED = re.compile(
    r"“([^“”]{1,2000})”"
    r"|„([^„“”\"\n]{1,2000})(?<!\s)\"|„([^„“”]{1,2000})[“”]"
    r"|«([^«»]{1,2000})»|»([^«»]{1,2000})«"
    r"|\"([^\"\n]{1,2000})\"",
    re.DOTALL,
)
_BLOCK_QUOTE = re.compile(r"(?:^[ \t]{0,3}>[^\n]*\n?)+", re.MULTILINE)  # "> a\n> b"
_QUOTE_SIGN = re.compile(r"^[ \t]{0,3}>", re.MULTILINE)  # the ">" of "> a"
_QUOTE_WORDS = 4  # fewer are a name or a term
_TLD = r"(?:com|org|net|gov|edu|mil|int|io|ai|info|eu|de|at|ch|fr|it|es|nl|uk|jp|cn|us|ca|au)"
_IN_ADDRESS = r"[^\s<>\"'`|\\^{}]"
# "https://example.org/a", "www.example.org", "office@example.org", "10.1000/xyz", "example.org".
_ADDRESS = re.compile(
    rf"\bhttps?://{_IN_ADDRESS}{{3,2000}}|\bwww\.{_IN_ADDRESS}{{3,2000}}"
    r"|\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
    rf"|\b10\.\d{{4,9}}/{_IN_ADDRESS}{{2,300}}"
    rf"|(?<![\w@.-])(?:[a-z0-9-]{{1,63}}\.){{1,5}}{_TLD}(?![\w-])(?:/{_IN_ADDRESS}{{0,2000}})?",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?)]}*_'\"’”"
_MARK = re.compile(r"\[([\w.,;: /-]{1,80})\](?!\()")  # [t2], [12], [a-document]
_MARKS_END = re.compile(r"\s?[,;]\s?")
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_SENTENCE_ENDS = (". ", "\n")
_CLAUSE_ENDS = (";", ",")
_SOURCE_SENTENCE_ENDS = ("\n", ". ", "! ", "? ")
_NEAR_CHARS = 300  # of a sentence, before and behind a place
# "notes/report.pdf", "report.pdf p. 3"; not "report".
_FILE = re.compile(r"[\w./ -]{1,76}\.[A-Za-z]{2,5}(?: p\. \d{1,5})?")
# "[1] The report", "[1]: The report" at the beginning of a line; not "[1] 2004".
_FOOTNOTE = re.compile(r"^[ \t]{0,3}\[(\d{1,3})\](?=:?[ \t]+\D)", re.MULTILINE)
_YEARS = range(1500, 2101)
# Before a count, which is in no row: "how many", "the number of", "in all"; not "how much".
_COUNTING = re.compile(
    r"\b(?:how (?:many|often)|numbers? of|counts?|times|rows|in all|altogether"
    r"|anzahl|zahl der|wie viele|mal)\b",
    re.IGNORECASE,
)
_KEPT_TEXTS = 64  # whose claims are remembered: several rules ask for those of one finding,
_KEPT_CHARS = 600  # and for those of one sentence of a source; long texts would take much memory
_CLAUSE_CHARS = 120  # of a clause that a small value ends
_SPAN_CHARS = 300  # around a time, where the dates stand between which it lies
# "a ... b", "a […] b", "a [of them] b"; not "a. b".
_ELLIPSIS = re.compile(r"\[?(?:\.{3}|…)\]?|\[[^\]]{0,40}\]")
_QUOTE_MARKS = str.maketrans("‘’‚‛′“”„«»‐‑‒–—−", "'''''\"\"\"\"\"------")


@dataclass(frozen=True)
class Claim:
    """`text` is as written; a figure has what was read in it, and the words near it.

    `between` is set for a time such as "19 years" if two dates or years beside it lie so far apart.
    """

    kind: ClaimKind
    text: str
    figure: Figure | None = None
    near: Near | None = None
    between: str = ""


def claims(text: str, marks: Collection[str] = ()) -> Iterator[Claim]:
    """Yields the claims of a text that can be looked up; code and marks of citations are none.

    Marks are brackets with ids, `marks` or those of the text's own footnotes: "[134] million" is a
    figure.
    """
    if marks or len(text) > _KEPT_CHARS:
        return _read_claims(text, marks)
    return iter(_kept_claims(text))


@lru_cache(maxsize=_KEPT_TEXTS)
def _kept_claims(text: str) -> tuple[Claim, ...]:
    return tuple(_read_claims(text, ()))


def _read_claims(text: str, marks: Collection[str]) -> Iterator[Claim]:
    """Yields the claims of a text, as they are read.

    What was read as one kind of claim is blanked, so that no other kind finds it again.
    """
    rest = without_code(text)
    for match in _ADDRESS.finditer(rest):
        yield Claim("address", match[0].rstrip(_TRAILING))
    rest = _without(_ADDRESS, rest)

    for pattern in (_BLOCK_QUOTE, _QUOTED):
        quotes: dict[str, str] = {}
        for match in pattern.finditer(rest):
            quote = _quote(match[0])
            if quote:
                quotes[match[0]] = quote
        for quote in quotes.values():
            yield Claim("quotation", quote)
        rest = _without(pattern, rest, quotes.get)

    known = {*marks, *_FOOTNOTE.findall(rest)}
    rest = _without(_MARK, rest, lambda mark: _is_mark(mark[1:-1], known))
    found = [*figures(rest)]
    words = _near_each(text, rest, found)
    for figure in found:
        between = _between(figure, text) if is_time(figure.unit) else ""
        yield Claim("figure", figure.text, figure, words.get(figure.start), between)


def _is_mark(inside: str, known: Collection[str]) -> bool:
    """True if brackets hold known ids, or the names of files."""
    return all(part in known or _FILE.fullmatch(part) for part in _MARKS_END.split(inside))


def small_claims(text: str) -> Iterator[Claim]:
    """Yields the small whole numbers of a text that are values, as in "Gold: 4", with clauses.

    They may be counts, which no source needs to have: only evidence against one means something.
    """
    rest = without_code(text)
    found = [*small_values(rest)]
    if not found:
        return

    all_figures = sorted([*figures(rest), *found], key=lambda figure: figure.start)
    near = _near_each(text, rest, all_figures)
    for figure in found:
        sentence_start = _behind_last(_SENTENCE_ENDS, rest, figure.start)
        clause_start = max(sentence_start, _behind_last(_CLAUSE_ENDS, rest, figure.start))
        clause = text[clause_start : figure.end].strip(" -*|")
        is_count = _COUNTING.search(rest, sentence_start, figure.start) is not None
        if len(clause) <= _CLAUSE_CHARS and not is_count:
            yield Claim("figure", clause, figure, near[figure.start])


def _behind_last(ends: Sequence[str], text: str, place: int) -> int:
    """Returns the place behind the last end before a place, or behind its first sign; else 0."""
    return max(text.rfind(end, 0, place) for end in ends) + 1


def near_at(text: str, at: int) -> Near | None:
    """Returns the words near the figure at a place; None if no claim of the text has it."""
    sentence_start = _behind_last(_SOURCE_SENTENCE_ENDS, text, at)
    ends = [text.find(end, at) for end in _SOURCE_SENTENCE_ENDS]
    sentence_stop = min((end for end in ends if end >= 0), default=len(text))
    start = max(sentence_start, at - _NEAR_CHARS)
    stop = min(sentence_stop + 1, at + _NEAR_CHARS)
    for claim in claims(text[start:stop]):
        if claim.figure and claim.figure.start == at - start:
            return claim.near
    return None


class _Dates:
    """The dates of a text at these spans, in their order."""

    def __init__(self, text: str, spans: Iterable[tuple[int, int]]) -> None:
        self._text = text
        self._spans = sorted(spans)
        self._starts = [start for start, _ in self._spans]

    def around(self, place: int) -> int | None:
        """Returns the number of the date at a place; None if there is none."""
        number = bisect_right(self._starts, place) - 1
        if number < 0:
            return None
        _, stop = self._spans[number]
        return number if place < stop else None

    def words(self, number: int) -> str:
        """Returns a date as it is written."""
        start, stop = self._spans[number]
        return self._text[start:stop]

    def shares_sentence(self, number: int) -> bool:
        """True if the sentence of a date has another date: the one before it or the one after."""
        pairs = pairwise(self._spans[max(0, number - 1) : number + 2])
        between = [self._text[first[1] : second[0]] for first, second in pairs]
        return any(not _SENTENCE_END.search(text) for text in between)


def _near_each(text: str, rest: str, found: Sequence[Figure]) -> dict[int, Near]:
    """Returns the words near each figure but years, by its start.

    The day of a date does not part words from the figure behind it.
    """
    if not found:
        return {}

    dates = _Dates(text, date_spans(rest))
    apart = [figure for figure in found if not _is_year(figure)]
    without_days = [figure for figure in apart if dates.around(figure.start) is None]
    words = _surroundings(text, apart)
    if len(without_days) < len(apart):
        words |= _surroundings(text, without_days)

    for figure in apart:
        date = dates.around(figure.start)
        if date is not None and dates.shares_sentence(date):
            # Of two dates each belongs to words of its own: the day has only its date near it.
            words[figure.start] = Near(own=dates.words(date))
        else:
            year = bound_year(text, Extent(figure.start, figure.end))
            words[figure.start] = replace(words[figure.start], year=year)
    return words


def _surroundings(text: str, found: Sequence[Figure]) -> dict[int, Near]:
    """Returns the words near each of some figures, by its start."""
    near = surroundings(text, [Extent(figure.start, figure.end) for figure in found])
    return {figure.start: own for figure, own in zip(found, near, strict=True)}


def _is_year(figure: Figure) -> bool:
    if figure.unit is not None or figure.scale != 1:
        return False
    digits = figure.digits
    return digits.isdigit() and len(digits) == 4 and int(digits) in _YEARS


def _between(figure: Figure, text: str) -> str:
    """Returns words for a time that lies between two dates near it; empty for any other."""
    before = text[max(0, figure.start - _SPAN_CHARS) : figure.start]
    after = text[figure.end : figure.end + _SPAN_CHARS]
    spans = spans_in([f"{before} {after}"]).get(figure.unit or "", set())
    is_span = any(reading.value in spans for reading in figure.readings)
    return "of two dates beside it" if is_span else ""


def without_quotes(text: str) -> str:
    """Returns a text without quotation marks, for texts that put own words between them."""
    return re.sub(r"[“”„«»\"]|^[ \t]{0,3}>", " ", text, flags=re.MULTILINE)


def _quote(written: str) -> str:
    """Returns the quoted words without their marks; empty for a name or a term."""
    without_signs = _QUOTE_SIGN.sub("", written)
    quote = without_signs.strip().strip('“”„«»"').strip()
    return quote if len(quote.split()) >= _QUOTE_WORDS else ""


def pieces(quotation: str) -> list[str]:
    """Returns the parts of a quotation between its omissions, in the form of `plain_text`."""
    parts = [plain_text(part).strip(" .,;:!?\"'") for part in _ELLIPSIS.split(quotation)]
    return [part for part in parts if part]


def plain_text(text: str) -> str:
    """Returns a text without case, spare white space, kinds of quotes and emphasis."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTE_MARKS)
    return re.sub(r"\s+", " ", re.sub(r"[*_`]+", "", folded))


def plain_address(text: str) -> str:
    """Returns an address, or a text of addresses, in lower case without https:// and www."""
    return re.sub(r"https?://(?:www\.)?|(?<![\w.])www\.", "", text.lower())


def _without(
    pattern: re.Pattern[str],
    text: str,
    where: Callable[[str], object] = bool,
) -> str:
    """Returns a text with blanks in place of matches, those that `where` holds for."""

    def blanked(match: re.Match[str]) -> str:
        return blanks_for(match[0]) if where(match[0]) else match[0]

    return pattern.sub(blanked, text)
