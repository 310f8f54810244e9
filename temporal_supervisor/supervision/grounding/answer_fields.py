"""The fields of a structured answer, looked up in the findings.

A number is found if a line of a finding has it beside the unit that the field's name ends in
(`mean_wind_ms`, `permit_days`) and beside the names in the same object (`"site": "Esbjerg"`), as
far as findings have these. A row of a table counts as one line for each cell, with the head of its
column. The figures, quotations and URLs in a text are looked up like those of the answer.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain, combinations, product

from pydantic import JsonValue

from temporal_supervisor.supervision.base.text import has_whole
from temporal_supervisor.supervision.grounding.claims import Claim, claims, plain_text
from temporal_supervisor.supervision.grounding.doubts.question_patterns import choices_in
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import Support
from temporal_supervisor.supervision.grounding.units import scale_of, unit_of, unit_words
from temporal_supervisor.supervision.grounding.wording.directions import (
    may_be_negative,
    may_be_unsigned,
    says_fall,
)
from temporal_supervisor.supervision.grounding.wording.time_words import (
    Day,
    dates_in,
    may_be_one,
)
from temporal_supervisor.supervision.grounding.written_figures import (
    SMALL,
    Figure,
    small_numbers,
    two_digit_numbers,
    values,
    whole_values,
)

# The breaks between words: in "mean_wind", "mean wind", "meanWind".
_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
# "Esbjerg: 7", "Esbjerg (DK)", "Esbjerg - 7"; not "Saint-Malo".
_NAME_END = re.compile(r"[:;,(\[|]|\s[-–—]\s")
_NAME_WORDS = 6  # more make a sentence, which names no row
_STEM = 6  # letters of a word: Germany and German are one name
_SHORT = 2  # letters of a word that may stand within any other
_QUOTES = " \"'“”„«»*_."
_RANK_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_RANKS = {word: rank for rank, word in enumerate(_RANK_WORDS.split(), 1)}
_NAME_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGIT = re.compile(r"\d")
# "how many days", "total number of days", "wie oft"; not "how much".
_HOW_MANY = re.compile(
    r"\b(?:how (?:many|often)|(?:total )?number of|wie (?:viele|oft)|combien)\b",
    re.IGNORECASE,
)
# "no permits", "didn't", "keine"; not "one".
_NOTHING = re.compile(
    r"\b(?:no|not|none|zero|nil|nobody|never|nothing|neither|without|"
    r"kein\w*|null|nicht\w*|nie\w*|ohne|"
    r"aucun\w*|ne|pas|rien|sans|ning\w*|nada|nunca|sin)\b|n't\b|没有|无",
    re.IGNORECASE,
)
_COMPARED = 200  # numbers of findings, each with each
_ANSWER_FIELDS = ("value", "values", "answer", "count", "number", "n", "total")
_STATISTIC_WORDS = """
count counts total sum mean avg average median mode min max minimum maximum std stddev deviation
variance correlation coefficient covariance skewness kurtosis percentile quantile
"""
_STATISTICS = frozenset(_STATISTIC_WORDS.split())
_NO_NAMES = (
    *("true", "false", "yes", "no", "none", "n/a"),
    *("unknown", "other", "high", "medium", "low"),
)
# In a field's name, not its unit.
_LABELS = ("year", "month", "week", "day", "hour", "minute", "second")
_YEARS = range(1000, 3000)


FieldClaims = Iterator[tuple[str, str, bool]]
"""The path of a field, a claim that it makes, and whether the findings have that."""


def field_claims(value: JsonValue, findings: Sequence[str], given: Sequence[str]) -> FieldClaims:
    """Returns the claims of a structured answer.

    `given` are texts that it may repeat: the goal and the plan.
    """
    if value is None:
        return iter(())
    return _Findings(findings, given).claims_in(value, "answer_json", "", [])


class _Findings:
    """Findings, in which the fields of an answer are looked up."""

    def __init__(self, findings: Sequence[str], given: Sequence[str]) -> None:
        self._findings = [list(_lines(text)) for text in findings]
        self._lines = [*chain.from_iterable(self._findings)]
        self._all = Support([Source(text) for text in (*findings, *given)], are_all=True)
        self._asked = " ".join(given)
        self._small = {*chain.from_iterable(map(small_numbers, self._lines))}
        self._found = plain_text("\n".join(findings))
        self._told = "\n".join([self._found, *given]).casefold()
        self._supports: dict[tuple[tuple[str, ...], str, bool], Support] = {}

    def claims_in(self, value: JsonValue, path: str, name: str, row: list[str]) -> FieldClaims:
        """Yields the claims of a part of the answer.

        It is the field `name`, in an object with the names `row`.
        """
        if isinstance(value, dict):
            row = self._names(value) or row
            for key, part in value.items():
                yield from self.claims_in(part, f"{path}.{key}", key, row)
        elif isinstance(value, list):
            for at, part in enumerate(value):
                yield from self.claims_in(part, f"{path}[{at}]", name, row)
        elif isinstance(value, str):
            for claim in claims(value):
                yield (path, claim.text, self._all.supports(claim))
            if name in _ANSWER_FIELDS and self._is_stranger(value):
                yield (path, value, False)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from self._number(value, path, name, row)

    def _number(self, value: float, path: str, name: str, row: list[str]) -> FieldClaims:
        """Yields the claim of a number, if it makes one."""
        text = str(value) if isinstance(value, int) else f"{value:.12g}"
        unit = _unit(name)
        figure = next(values(text.lstrip("-")), None)
        if figure is None:
            return
        if unit is None and value % 1 == 0 and abs(value) < SMALL:
            # A small count needs no support, as in texts; as the answer it stands in a finding.
            if name in _ANSWER_FIELDS or _is_statistic(name):
                yield (path, text, self._has_small(int(value), figure))
            return

        support = self._all
        if unit is not None or value not in _YEARS:
            support = self._support(row, name, unit, listed="[" in path)
        is_found = support.supports(Claim("figure", text, figure)) and self._has_sign(value, figure)
        yield (path, text, is_found)

    def _has_small(self, value: int, figure: Figure) -> bool:
        """True if a finding has a small number, in words too, or two whose sum or difference it is.

        A count is no difference of two others.
        """
        if value == 0:
            return 0 in self._small or any(map(_NOTHING.search, self._lines))
        if abs(value) in self._small:
            return self._has_sign(value, figure)
        if _HOW_MANY.search(self._asked):
            return False
        return abs(value) in self._near_sums

    @cached_property
    def _dates(self) -> set[Day]:
        """The dates in the findings."""
        return {*chain.from_iterable(map(dates_in, self._lines))}

    @cached_property
    def _whole_numbers(self) -> set[int]:
        """The whole numbers of one or two digits in the findings, also as words and as ranks."""
        numbers = {*self._small}
        for line in self._lines:
            numbers |= two_digit_numbers(line)
        for word, rank in _RANKS.items():
            if re.search(rf"\b{word}\b", self._found):
                numbers.add(rank)
        return numbers

    @cached_property
    def _near_sums(self) -> set[Decimal]:
        """The sums and differences of two numbers of the findings."""
        found: set[Decimal] = set()
        for line in self._lines:
            found.update(figure.readings[0].value for figure in whole_values(line))
        numbers = sorted(found)[:_COMPARED]
        near: set[Decimal] = set()
        for one, other in combinations(numbers, 2):
            near.add(one + other)
            near.add(other - one)
        return near

    def _is_stranger(self, value: str) -> bool:
        """True for a name of which no finding has a word, and for a number in it that none has.

        A choice of the question may be taken in its own words.
        """
        plain = value.strip(_QUOTES)
        words = plain.split()
        if plain.lower() in _NO_NAMES or not 0 < len(words) <= _NAME_WORDS:
            return False
        dates = dates_in(plain)
        if dates:
            return not any(may_be_one(*pair) for pair in product(dates, self._dates))
        if any(claims(plain)):
            return False

        told = self._told if choices_in(self._asked) else self._found
        numbers = two_digit_numbers(plain)
        if numbers:
            return not numbers <= self._whole_numbers and plain_text(plain) not in told
        if not plain[:1].isupper():
            return False
        long = [word for word in _NAME_WORD.findall(plain) if len(word) > _SHORT]
        if long:
            return not any(word.casefold()[:_STEM] in told for word in long)
        return not any(has_whole(told, word.casefold()) for word in words)

    def _has_sign(self, value: float, figure: Figure) -> bool:
        """True unless each line that has a number gives it the other sign without words for it."""
        is_asked_for = may_be_negative(self._asked) if value < 0 else says_fall(self._asked)
        if is_asked_for:
            return True
        is_known = False
        for line in self._lines:
            for found in whole_values(line):
                if not _is_same(found, figure):
                    continue
                is_known = True
                is_explained = says_fall(line) if value < 0 else may_be_unsigned(line)
                if found.is_negative == (value < 0) or is_explained:
                    return True
        return not is_known

    def _names(self, fields: dict[str, JsonValue]) -> list[str]:
        """Returns the names that the texts of an object begin with, of those that findings have."""
        names: dict[str, None] = {}
        for value in fields.values():
            if isinstance(value, str):
                text = _NAME_END.split(value)[0]
                if _may_be_name(text):
                    names[_plain(text)] = None
        known = "\n".join(self._lines)
        return [name for name in names if name in known]

    def _support(
        self,
        row: list[str],
        name: str,
        unit: re.Pattern[str] | None,
        listed: bool,
    ) -> Support:
        """Returns the lines that name the row and the unit.

        Where there are none, these are lines with the unit, or with a word of the field's name, of
        findings that name the row, or of any finding unless the row is one of a list; else all
        lines of the findings that name the row.
        """
        key = (tuple(row), unit.pattern if unit else name, listed)
        if key not in self._supports:
            lines = self._lines_about(row, name, unit, listed)
            self._supports[key] = Support([Source("\n".join(lines))])
        return self._supports[key]

    def _lines_about(
        self,
        row: list[str],
        name: str,
        unit: re.Pattern[str] | None,
        listed: bool,
    ) -> list[str]:
        """Returns the lines that may have the number of a field, by the first rule with some."""
        of_row = _naming(row, self._lines) or self._lines
        mark = unit or _any_word(name)
        if mark and not any(map(mark.search, of_row)):
            # The row is named elsewhere than the unit, or than the field.
            about = self._findings_about(row)
            anywhere = self._lines if unit and not listed else []
            marked = [*filter(mark.search, about)] or [*filter(mark.search, anywhere)]
            of_row = marked or about or of_row
        if unit is None:
            return of_row
        return [*filter(unit.search, of_row)] or of_row

    def _findings_about(self, row: list[str]) -> list[str]:
        """Returns the lines of all findings that name the row anywhere."""
        about: list[str] = []
        for lines in self._findings:
            if any(name in line for name, line in product(row, lines)):
                about += lines
        return about


def _naming(names: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Returns the lines with all names; where there are none, those with any of them."""
    counts = [sum(name in line for name in names) for line in lines]
    some = [line for line, count in zip(lines, counts, strict=True) if count]
    whole = [line for line, count in zip(lines, counts, strict=True) if count == len(names)]
    return whole or some


def _may_be_name(text: str) -> bool:
    """True for a few words that are neither a measure nor a claim."""
    if _is_measure(text) or not 0 < len(text.split()) <= _NAME_WORDS:
        return False
    return not any(claims(text))


def _is_same(one: Figure, other: Figure) -> bool:
    """True if two figures have the same digits, however they are written."""
    values_of_one = {reading.value for reading in one.readings}
    return any(reading.value in values_of_one for reading in other.readings)


def _is_measure(text: str) -> bool:
    """True for a word such as million or percent, which names no row."""
    return scale_of(text) != 1 or unit_of(text) is not None


def _is_statistic(name: str) -> bool:
    """True if a field is named after a count or a computation, as `outlier_count` is."""
    return not _STATISTICS.isdisjoint(word.lower() for word in _WORDS.split(name))


def _any_word(name: str) -> re.Pattern[str] | None:
    """Returns the pattern of the words in a field's name; None without one."""
    words = [re.escape(word.lower()) for word in _WORDS.split(name) if word]
    if not words:
        return None
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(words)})(?![^\W_])")


def _unit(name: str) -> re.Pattern[str] | None:
    """Returns the words of the unit in which a field's name ends; None if it ends in none."""
    *before, last = _WORDS.split(name)
    if not before or last.lower() in _LABELS:
        return None
    return unit_words(last.lower())


def _lines(text: str) -> Iterator[str]:
    """Yields the lines of a finding as `plain_text` has them, each after its heading."""
    heading = ""
    head: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            is_rule = set(line) <= set("|-: ")
            if not head:
                head = cells
            elif not is_rule:
                for cell in _with_heads(cells, head):
                    yield _plain(f"{heading} {cell}")
            continue

        head = []
        if line.startswith("#") or line.endswith((":", ":**")):
            heading = line
        elif line:
            yield _plain(f"{heading} {line}")


def _with_heads(cells: Sequence[str], head: Sequence[str]) -> Iterator[str]:
    """Yields each cell of a row behind the names in the row and the head of its column."""
    words = [cell for cell in cells[1:] if not _DIGIT.search(cell)]
    names = " ".join([cells[0], *words])
    for top, cell in zip(head, cells, strict=False):
        yield f"{names} {top}: {cell}"


def _plain(text: str) -> str:
    return plain_text(text.replace("_", " ")).strip()
