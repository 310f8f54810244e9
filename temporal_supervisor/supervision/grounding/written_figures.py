"""Reading the figures of a text: how each is written, what it may mean, and how exact it is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from temporal_supervisor.supervision.grounding.units import (
    CURRENCY,
    DIMENSIONS,
    LETTER,
    LETTER_SCALE,
    OF_MONEY,
    SCALE,
    UNIT,
    mentioned_scales,
    mentioned_units,
    scale_of,
    unit_of,
)

SMALL = 13  # whole numbers below it are counts of everyday speech and need no support
_WHOLE = 100  # per cent: a word for all
_KEPT_DIGITS = 4_096  # the digits of a table come again in the texts about it
_KEPT_CHARS = 24  # a row of CSV may be read as one number
_SIGNIFICANT = 3  # a round number with so many digits that count is as exact as one with decimals

# "1,234,567.8" in groups, "1234.5", "0,75". The first digit is apart, so that a search skips to it.
_DIGITS = (
    r"\d(?:\d{0,2}(?:[,.'’\u00a0\u2009\u202f ]\d{3})+(?!\d)(?:[.,]\d{1,12})?"
    r"|\d{0,23}(?:[.,]\d{1,24})?)"
)
# The end of "1.2e3", "1.2 × 10^3", "1.2·10⁻³".
_POWER = r"(?:[eE][-+]?\d{1,3}|\s?[x×·*]\s?10(?:\^|\*\*)?(?:[-−]?\d{1,3}|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
# "1,234.5", "12 million euros", "1.2e3 kg", "12k".
_FIGURE = re.compile(
    rf"(?P<digits>{_DIGITS})(?P<power>{_POWER})?"
    rf"(?:[\s\u00a0]?(?P<scale>{SCALE})"
    rf"|[\s\u00a0]?(?P<money>{OF_MONEY})|(?P<letter>{LETTER_SCALE}))?"
    rf"(?:[\s\u00a0-]?(?P<unit>{UNIT}))?",
    re.IGNORECASE,
)
# The end of what is before the digits: "EUR ", "US$".
_CURRENCY = re.compile(rf"(?<!\w)(?P<currency>{CURRENCY})\s?[-−]?$", re.IGNORECASE)
# Directly before the digits, or before their currency: "a - 5" and "3-5" have none.
_MINUS = re.compile(r"(?:^|[\s(|=:\[*])[-−–][$€£¥]?\Z")
# Not $, which also matches before a line's end.
_IN_A_WORD = re.compile(rf"(?:{LETTER}|[.,]|[A-Za-z][-‑])\Z")
# The end of what is before the digits: "about ", "more than ", "~"; not "the ".
_ABOUT = re.compile(
    r"(?:\b(?:(?P<near>about|around|approximately|approx\.?|roughly|circa|ca\.|some"
    r"|etwa|rund|ungefähr|environ|près de|unos|unas)"
    r"|nearly|almost|over|above|below|under|more than|less than|up to|at least"
    r"|knapp|gut|fast|über|unter|mehr als|weniger als|bis zu"
    r"|presque|plus de|moins de|casi|más de|menos de)"
    r"|(?P<sign>[~≈约近])|[<>]|超过)"
    r"\s?[$€£¥]?$",
    re.IGNORECASE,
)
# Words before the number of a step or a page: a small whole number is a name there. So is the 4.2
# of a section.
_SECTION_WORDS = (
    r"sections?|chapters?|tables?|figures?|fig\.|appendix|articles?|versions?|releases?"
    r"|abschnitt|kapitel|tabelle|chapitre|tableau|annexe"
)
# The end of what is before the digits: "section ", "§ "; not "sections ".
_SECTION = re.compile(rf"(?:\b(?:{_SECTION_WORDS})(?<!s)\s|[§第]\s?)$", re.IGNORECASE)
_SECTION_NUMBER = re.compile(r"\d{1,2}\.\d{1,2}")
# The end of what is before the digits: "step ", "pages 3-", "#"; not "the ".
_LABEL = re.compile(
    r"(?:\b(?:steps?|items?|no\.|numbers?|points?|questions?|pages?|p\.|pp\.|lines?|rows?|columns?"
    r"|notes?|phases?|levels?|parts?|options?|rule|rank|top"
    r"|seiten?|zeilen?|spalten?|schritt|punkt|nr\.|lignes?|filas?|p[áa]ginas?"
    rf"|{_SECTION_WORDS})\s|[#№§第]\s?)(?:\d{{1,4}}\s?[-–,]\s?)?$",
    re.IGNORECASE,
)
_LABEL_DIGITS = 4  # laws have as many sections, and files lines
# Between "12.3" and "14.5 million": " and ", "–", ", ".
_JOINING = re.compile(r"\s?(?:and|to|or|vs\.?|und|bis|oder|auf|et|à|ou|a|[-–—/,、和至到])\s?")
# The end of what is before the digits: "Confidence: ".
_SURE = re.compile(r"(?:confidence|konfidenz|confiance|confianza)\W{0,6}$", re.IGNORECASE)
# Behind the digits: " confident", "-confidence", " sicher".
_SURE_AFTER = re.compile(r"\s?-?(?:confiden|konfidenz|sicher\b)", re.IGNORECASE)
# The end of what is before the digits: "ISO "; not "USD ", "FROM ".
_ACRONYM = re.compile(
    r"\b(?!(?:IN|OF|TO|BY|AT|ON|IS|WAS|AND|OR|THE|FROM|FOR|USD|EUR|GBP|JPY|CHF|CNY|INR)\b)"
    r"[A-Z&]{2,6} $"
)
# 21st, 5G, 2010.csv, 1.2.3, 15.03.2017.
_JOINED = re.compile(rf"(?!\d){LETTER}|\.[A-Za-z]|\.\d+\.\d|\.[12]\d{3}(?!\d)")
# "1. First", "## 2 Results", "1.2) Then"; not "1.5 million".
_LIST_NUMBER = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]*)?\d{1,3}(?:\.\d{1,3})*[.)][ \t]|^[ \t>]*#{1,6}[ \t]*\d{1,3}[ \t]",
    re.MULTILINE,
)
# 25.03.2026, and 25.03. where a word says that it is a date
_DATE = re.compile(
    r"(?<![\d.,])\d{1,2}\.[ \u00a0]?\d{1,2}\.[ \u00a0]?[12]\d{3}(?!\d)"
    r"|\b(?:am|vom|zum|bis|ab|seit) (?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?!\d)",
    re.IGNORECASE,
)
# "12 rows", "12.5"; not "v12", "12a".
_SIMPLE = re.compile(r"(?<![\w.])\d{1,24}(?:\.\d{1,24})?(?![\w])")
# "Gold: 4", "the rank is 4."; not "is 4 days".
_SMALL_VALUE = re.compile(
    r"(?:\s(?:is|was|are|were|beträgt|betrug|ist|war|=)|[\w)*]:\**)\s\**"
    r"(?P<minus>[-−])?(?P<digits>\d{1,2})\**"
    r"(?=[.;,)]?(?:\s|\Z))(?!,?[^\S\n]+[^\W\d])"
)
_FACTORS = [Decimal(10) ** power for power in (0, 3, 6, 9, -3, -6, -9, 2, -2)]  # between two forms
_YEAR = re.compile(r"[12]\d{3}")  # as written a year: 2010 is no rounded 2009
# Behind the digits: " points higher", "-point.", " Punkte mehr"; not " points to".
_POINTS = re.compile(
    r"[\s-](?:points?|Punkte?n?)\b"
    r"(?=\s+(?:higher|lower|more|less|ahead|behind|up|down|mehr|weniger)|[.;)]|\Z)"
)
_POWER_SIGNS = re.compile(r"e|\s?[x×·*]\s?10(?:\^|\*\*)?")  # of "e3", " × 10^3"
_GROUP_MARKS = re.compile(r"['’\u00a0\u2009\u202f ]")  # of "1’234", "1 234"
_DECIMAL_MARK = re.compile(r"[.,]")
_TIMES = re.compile(r"[x×](?!\w)")  # behind a factor: "1.2x"; not "1.2xy"
_NUMBER_WORDS = (
    ("one", "ein", "eine", "einem", "einen", "un", "une", "uno", "una"),
    ("two", "zwei", "deux", "dos"),
    ("three", "drei", "trois", "tres"),
    ("four", "vier", "quatre", "cuatro"),
    ("five", "fünf", "cinq", "cinco"),
    ("six", "sechs", "seis"),
    ("seven", "sieben", "sept", "siete"),
    ("eight", "acht", "huit", "ocho"),
    ("nine", "neun", "neuf", "nueve"),
    ("ten", "zehn", "dix", "diez"),
    ("eleven", "elf", "onze", "once"),
    ("twelve", "zwölf", "douze", "doce"),
)
_VALUE_OF_WORD = {word: value for value, words in enumerate(_NUMBER_WORDS, 1) for word in words}
# Such as three weeks, or two full years.
_IN_WORDS = re.compile(
    rf"(?<!\w)(?P<word>{'|'.join(_VALUE_OF_WORD)})[\s-](?:[^\W\d_]+\s)?(?P<unit>{UNIT})",
    re.IGNORECASE,
)
# "0", "12"; not the 12 of "112", "1.12" or "12.5".
_SMALL_DIGITS = re.compile(r"(?<![\d.,])\d{1,2}(?!\d|[.,]\d)")
_WORD = re.compile(r"[^\W\d_]+")
_ASCII = str.maketrans(
    "٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹０１２３４５６７８９٬٫．％٪",
    "012345678901234567890123456789,..%%",
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")


_Measure: TypeAlias = tuple[Decimal, str | None]
"""A scale and a unit that a figure may have."""


@dataclass(frozen=True)
class Reading:
    """One meaning of the digits as written: 1,234 may be 1.234, too.

    `tolerance` is half a unit of the last place.
    """

    value: Decimal
    tolerance: Decimal


@dataclass(frozen=True)
class Figure:
    """A figure of a text. `text` is the figure as written, with its unit, without its sign.

    A word such as million gives its `scale`. `start` is the place of its digits, `end` the place
    behind all of it. `others` are its further meanings: with the unit or scale of the figure that
    it is joined to, or of a head such as `(€m)`.
    """

    text: str
    readings: tuple[Reading, ...]
    scale: Decimal
    unit: str | None
    start: int
    end: int
    digits: str
    others: tuple["Figure", ...] = ()
    is_negative: bool = False


def figures(text: str) -> Iterator[Figure]:
    """Returns the figures of a text that need support, in their order.

    Whole numbers below 13 without a unit, numbers of lists, sections and pages, and digits that are
    part of a name are left out.
    """
    text = _with_plain_digits(text)
    matches = [*_FIGURE.finditer(text)]
    if not matches:  # a long text without one is not searched for units
        return iter(())

    heads: list[_Measure] | None = None  # few texts have figures that need them
    # From behind: a plain figure takes the unit of the one that follows, "12.3 and 14.5 million".
    joined: Figure | None = None
    next_start = len(text)
    found: list[Figure] = []
    for match, figure in reversed([*_read_figures(matches, text)]):
        is_count = _needs_none(figure, text)
        if figure.unit is not None or figure.scale != 1:
            joined = figure
        elif _YEAR.fullmatch(figure.digits):
            joined = None
        else:
            if not _JOINING.fullmatch(text, match.end(), next_start):
                joined = None
            if not is_count:
                heads = _heads(_without(matches, text)) if heads is None else heads
                figure = _with_others(figure, heads, joined)
        next_start = match.start()
        if not is_count:
            found.append(figure)
    return reversed(found)


def _read_figures(
    matches: Sequence[re.Match[str]],
    text: str,
) -> Iterator[tuple[re.Match[str], Figure]]:
    """Yields the figures of a text with their matches, but for numbers of lists and names."""
    in_list_numbers: set[int] = set()
    for number in _LIST_NUMBER.finditer(text):
        in_list_numbers.update(range(*number.span()))
    for match in matches:
        figure = None if match.start() in in_list_numbers else _figure(match, text)
        if figure is not None and not _is_name(match, figure, text):
            yield match, figure


def _without(matches: Sequence[re.Match[str]], text: str) -> str:
    """Returns a text with a blank in place of each match."""
    starts = [match.start() for match in matches]
    ends = [match.end() for match in matches]
    between = zip([0, *ends], [*starts, len(text)], strict=True)
    return " ".join(text[end:start] for end, start in between)


def _with_others(figure: Figure, heads: Sequence[_Measure], joined: Figure | None) -> Figure:
    """Returns a plain figure with the scales and units that heads or a joined figure lend it."""
    meant = [*heads]
    if joined is not None:
        meant.append((joined.scale, joined.unit))
    others = [replace(figure, scale=scale, unit=unit) for scale, unit in meant]
    return replace(figure, others=tuple(others)) if others else figure


def small_values(text: str) -> Iterator[Figure]:
    """Yields the small whole numbers that are values, as in "Gold: 4", and no `figures`."""
    text = _with_plain_digits(text)
    for match in _SMALL_VALUE.finditer(text):
        if int(match["digits"]) < SMALL:
            figure = _plain_figure(match["digits"], *match.span("digits"))
            yield replace(figure, is_negative=match["minus"] is not None)


def _plain_figure(digits: str, start: int, end: int) -> Figure:
    """Returns an exact figure without a scale and a unit."""
    exact = (Reading(Decimal(digits), Decimal(0)),)
    return Figure(digits, exact, Decimal(1), None, start, end, digits)


def _heads(text: str) -> list[_Measure]:
    """Returns the scales and units in heads, without a figure: "(in Mio. €)", "Share (%)"."""
    heads: list[_Measure] = []
    for scale in sorted(mentioned_scales(text)):
        if scale != 1:
            heads.append((scale, None))
    for unit in sorted(mentioned_units(text)):
        if DIMENSIONS[unit] not in ("time", "currency"):
            heads.append((Decimal(1), unit))
    return heads


def values(text: str) -> Iterator[Figure]:
    """Yields all that may be read as a figure in the sources of a text.

    The more readings, the better.
    """
    text = _with_plain_digits(text)
    read: set[tuple[int, int]] = set()
    for match in _FIGURE.finditer(text):
        figure = _figure(match, text)
        if figure is not None:
            read.add(match.span("digits"))
            yield figure
    yield from _values_in_words(text)
    # Above, a row of CSV reads as one number with commas; here each of its cells is one.
    for match in _SIMPLE.finditer(text):
        if match.span() not in read:
            yield _plain_figure(match[0], *match.span())


def two_digit_numbers(text: str) -> set[int]:
    """Returns the whole numbers of one or two digits in a text."""
    return {int(digits) for digits in _SMALL_DIGITS.findall(text)}


def small_numbers(text: str) -> set[int]:
    """Returns the whole numbers below 13 in a text, in digits or in words."""
    words = _WORD.findall(text.lower())
    in_words = {_VALUE_OF_WORD[word] for word in words if word in _VALUE_OF_WORD}
    return {number for number in two_digit_numbers(text) if number < SMALL} | in_words


def whole_values(text: str) -> list[Figure]:
    """Returns the figures of a text in their order, without those that are part of another."""
    found = list[Figure]()
    for figure in sorted(values(text), key=lambda each: (each.start, -each.end)):
        if not found or figure.start >= found[-1].end:
            found.append(figure)
    return found


def is_same_in_any_scale(said: Figure, cell: Decimal) -> bool:
    """True if a figure is a cell's, as exact as it is written, in thousands or percent, too."""
    for reading in said.readings:
        value = reading.value * said.scale
        tolerance = reading.tolerance * said.scale
        if any(abs(value - abs(cell) * factor) <= tolerance for factor in _FACTORS):
            return True
    return False


def _values_in_words(text: str) -> Iterator[Figure]:
    """Yields the times, amounts and the like whose number is a word, such as "three weeks"."""
    for match in _IN_WORDS.finditer(text):
        value = Decimal(_VALUE_OF_WORD[match["word"].lower()])
        exact = (Reading(value, Decimal("0.5")),)
        yield Figure(match[0], exact, Decimal(1), unit_of(match["unit"]), *match.span(), str(value))


def _with_plain_digits(text: str) -> str:
    """Returns a text with the digits and signs of ASCII, and 25.03.2026 as 25/03/2026."""
    return _DATE.sub(lambda date: date[0].replace(".", "/"), text.translate(_ASCII))


def _figure(match: re.Match[str], text: str) -> Figure | None:
    """Returns the figure of these digits; None if they continue a word or another figure."""
    digits = match["digits"]
    before = text[max(0, match.start() - 40) : match.start()]
    if _IN_A_WORD.search(before[-2:]):
        return None

    scaled = match["scale"] or match["money"] or match["letter"]
    scale = scale_of(scaled, bool(match["money"])) if scaled else Decimal(1)
    currency = _CURRENCY.search(before) if before[-2:].strip() else None
    unit = None
    if match["unit"]:
        unit = unit_of(match["unit"])
    elif currency:
        unit = unit_of(currency["currency"])

    about = _ABOUT.search(before[-20:])
    readings = _readings(digits, match["power"], _width(about))
    is_plain = scale == 1 and unit is None and not about and not match["power"]
    if is_plain and _YEAR.fullmatch(digits):
        readings = (Reading(Decimal(digits), Decimal("0.5")),)
    if not readings:
        return None

    currency_chars = len(currency[0]) if currency else 0
    written = text[match.start() - currency_chars : match.end()].strip()
    sign_at = len(before) - currency_chars
    is_negative = _MINUS.search(before[:sign_at]) is not None
    place = match.span()
    return Figure(written, readings, scale, unit, *place, digits, is_negative=is_negative)


def _width(about: re.Match[str] | None) -> Decimal:
    """Returns the inexactness of a figure by the words before it, in units of its last digit.

    It is 0 for none, half a unit to both sides for "about", one to one side for "more than".
    """
    if about is None:
        return Decimal(0)
    if about["near"] or about["sign"]:
        return Decimal("0.5")
    return Decimal(1)


def _readings(digits: str, written_power: str | None, width: Decimal) -> tuple[Reading, ...]:
    read = _new_readings if len(digits) > _KEPT_CHARS else _kept_readings
    return read(digits, written_power, width)


@lru_cache(maxsize=_KEPT_DIGITS)
def _kept_readings(
    digits: str,
    written_power: str | None,
    width: Decimal,
) -> tuple[Reading, ...]:
    return _new_readings(digits, written_power, width)


def _new_readings(digits: str, written_power: str | None, width: Decimal) -> tuple[Reading, ...]:
    power = _power(written_power)
    plain = _GROUP_MARKS.sub("", digits)
    forms = _decimal_forms(plain)
    return tuple(Reading(Decimal(form) * power, _tolerance(form, width) * power) for form in forms)


def _decimal_forms(plain: str) -> Iterator[str]:
    """Yields the digits with a decimal point, for each way to read their commas and points.

    The last mark may be the decimal point: "1,234" is 1234 or 1.234.
    """
    *before, rest = _DECIMAL_MARK.split(plain)
    whole = "".join(before)
    marks = _DECIMAL_MARK.findall(plain)
    if not marks:
        yield whole + rest
        return
    groups_thousands = marks.count(marks[-1]) > 1
    if groups_thousands:
        yield whole + rest
        return
    is_one_group = len(marks) == 1 and len(rest) == 3 and len(whole) <= 3
    if is_one_group and whole.strip("0"):
        yield whole + rest
    yield f"{whole}.{rest}"


def _tolerance(written: str, width: Decimal) -> Decimal:
    """Returns the distance allowed between a figure and its source.

    About 30 is 25 to 35, more than 30 is up to 40.
    """
    whole, _, decimals = written.partition(".")
    zeros = 0
    if whole.strip("0") and not decimals:
        zeros = len(whole) - len(whole.rstrip("0"))
    place = Decimal(10) ** (zeros - len(decimals))
    if width:
        return place if decimals else max(place * width, Decimal(1))
    is_rounded = len(whole) - zeros >= _SIGNIFICANT
    return place / 2 if decimals or is_rounded else Decimal("0.5")


def _power(written: str | None) -> Decimal:
    """Returns the power of ten behind some digits: 1000 for "e3" and " × 10³", 1 for none."""
    if written is None:
        return Decimal(1)
    digits = _POWER_SIGNS.sub("", written.lower().translate(_SUPERSCRIPTS), count=1)
    return Decimal(10) ** max(-99, min(99, int(digits)))


def _needs_none(figure: Figure, text: str) -> bool:
    """True for counts of everyday speech, such as "3 reasons", and for the whole of 100 %."""
    if figure.unit == "%" and figure.readings[0].value == _WHOLE:
        return True
    if figure.scale != 1 or figure.unit is not None or _POINTS.match(text, figure.end):
        return False
    return figure.digits.isdigit() and int(figure.digits) < SMALL


def _is_name(match: re.Match[str], figure: Figure, text: str) -> bool:
    """True if the digits are part of a name or of a reference, not a figure."""
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end() : match.end() + 12]
    if figure.unit in (None, "%") and (_SURE.search(before[-20:]) or _SURE_AFTER.match(after)):
        return True
    if figure.unit is not None or figure.scale != 1:
        return False
    if _JOINED.match(after) and not _TIMES.match(after):
        return True
    if not figure.digits.isdigit():
        is_section = _SECTION_NUMBER.fullmatch(figure.digits) and _SECTION.search(before)
        return bool(is_section)
    is_label = len(figure.digits) <= _LABEL_DIGITS and _LABEL.search(before)
    return bool(is_label or _ACRONYM.search(before))
