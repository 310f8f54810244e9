"""Reading the figures of a text: how each is written, what it may mean, and how exactly it is given."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

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
_SIGNIFICANT = 3  # a round number with so many digits that count is as exact as one with decimals

# The first digit stands alone so that a search skips to it.
_DIGITS = r"\d(?:\d{0,2}(?:[,.'’\u00a0\u2009\u202f ]\d{3})+(?!\d)(?:[.,]\d{1,12})?|\d{0,23}(?:[.,]\d{1,24})?)"
_POWER = r"(?:[eE][-+]?\d{1,3}|\s?[x×·*]\s?10(?:\^|\*\*)?(?:[-−]?\d{1,3}|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
_FIGURE = re.compile(
    rf"(?P<digits>{_DIGITS})(?P<power>{_POWER})?"
    rf"(?:[\s\u00a0]?(?P<scale>{SCALE})|[\s\u00a0]?(?P<money>{OF_MONEY})|(?P<letter>{LETTER_SCALE}))?"
    rf"(?:[\s\u00a0-]?(?P<unit>{UNIT}))?",
    re.IGNORECASE,
)
_CURRENCY = re.compile(rf"(?<!\w)(?P<currency>{CURRENCY})\s?[-−]?$", re.IGNORECASE)
# Directly before the digits, or before their currency: "a - 5" and "3-5" have none.
_MINUS = re.compile(r"(?:^|[\s(|=:\[*])[-−–][$€£¥]?\Z")
# Not $, which also matches before a line's end.
_IN_A_WORD = re.compile(rf"(?:{LETTER}|[.,]|[A-Za-z][-‑])\Z")
_ABOUT = re.compile(
    r"(?:\b(?:(?P<near>about|around|approximately|approx\.?|roughly|circa|ca\.|some|etwa|rund|ungefähr|environ|près de|"
    r"unos|unas)|nearly|almost|over|above|below|under|more than|less than|up to|at least|knapp|gut|fast|über|unter|"
    r"mehr als|weniger als|bis zu|presque|plus de|moins de|casi|más de|menos de)|(?P<sign>[~≈约近])|[<>]|超过)"
    r"\s?[$€£¥]?$",
    re.IGNORECASE,
)
# What comes before the number of a step or a page: a small whole number is a name there, 4.2 of a
# section, too.
_SECTION_WORDS = (
    r"sections?|chapters?|tables?|figures?|fig\.|appendix|articles?|versions?|releases?|abschnitt|kapitel|tabelle|"
    r"chapitre|tableau|annexe"
)
_SECTION = re.compile(rf"(?:\b(?:{_SECTION_WORDS})(?<!s)\s|[§第]\s?)$", re.IGNORECASE)
_SECTION_NUMBER = re.compile(r"\d{1,2}\.\d{1,2}")
_LABEL = re.compile(
    r"(?:\b(?:steps?|items?|no\.|numbers?|points?|questions?|pages?|p\.|pp\.|lines?|rows?|columns?|notes?|phases?|"
    r"levels?|parts?|options?|rule|rank|top|seiten?|zeilen?|spalten?|schritt|punkt|nr\.|lignes?|filas?|p[áa]ginas?|"
    rf"{_SECTION_WORDS})\s|[#№§第]\s?)(?:\d{{1,4}}\s?[-–,]\s?)?$",
    re.IGNORECASE,
)
_LABEL_DIGITS = 4  # laws have as many sections, and files lines
# 12.3 and 14.5 million
_JOINING = re.compile(r"\s?(?:and|to|or|vs\.?|und|bis|oder|auf|et|à|ou|a|[-–—/,、和至到])\s?")
_SURE = re.compile(r"(?:confidence|konfidenz|confiance|confianza)\W{0,6}$", re.IGNORECASE)
_SURE_AFTER = re.compile(r"\s?-?(?:confiden|konfidenz|sicher\b)", re.IGNORECASE)
_ACRONYM = re.compile(
    r"\b(?!(?:IN|OF|TO|BY|AT|ON|IS|WAS|AND|OR|THE|FROM|FOR|USD|EUR|GBP|JPY|CHF|CNY|INR)\b)[A-Z&]{2,6} $"
)
# 21st, 5G, 2010.csv, 1.2.3, 15.03.2017.
_JOINED = re.compile(rf"(?!\d){LETTER}|\.[A-Za-z]|\.\d+\.\d|\.[12]\d{3}(?!\d)")
_LIST_NUMBER = re.compile(
    r"^[ \t>]*(?:#{1,6}[ \t]*)?\d{1,3}(?:\.\d{1,3})*[.)][ \t]|^[ \t>]*#{1,6}[ \t]*\d{1,3}[ \t]", re.MULTILINE
)
# 25.03.2026, and 25.03. where a word says that it is a date
_DATE = re.compile(
    r"(?<![\d.,])\d{1,2}\.[ \u00a0]?\d{1,2}\.[ \u00a0]?[12]\d{3}(?!\d)"
    r"|\b(?:am|vom|zum|bis|ab|seit) (?:0?[1-9]|[12]\d|3[01])\.(?:0?[1-9]|1[0-2])\.(?!\d)",
    re.IGNORECASE,
)
_SIMPLE = re.compile(r"(?<![\w.])\d{1,24}(?:\.\d{1,24})?(?![\w])")
_SMALL_VALUE = re.compile(
    r"(?:\s(?:is|was|are|were|beträgt|betrug|ist|war|=)|[\w)*]:\**)\s\**"
    r"(?P<minus>[-−])?(?P<digits>\d{1,2})\**"
    r"(?=[.;,)]?(?:\s|\Z))(?!,?[^\S\n]+[^\W\d])"
)
_FACTORS = [Decimal(10) ** power for power in (0, 3, 6, 9, -3, -6, -9, 2, -2)]  # between two forms
_YEAR = re.compile(r"[12]\d{3}")  # as written a year: 2010 is no rounded 2009
_POINTS = re.compile(
    r"[\s-](?:points?|Punkte?n?)\b(?=\s+(?:higher|lower|more|less|ahead|behind|up|down|mehr|weniger)|[.;)]|\Z)"
)
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
    rf"(?<!\w)(?P<word>{'|'.join(_VALUE_OF_WORD)})[\s-](?:[^\W\d_]+\s)?(?P<unit>{UNIT})", re.IGNORECASE
)
_ASCII = str.maketrans("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹０１２３４５６７８９٬٫．％٪", "012345678901234567890123456789,..%%")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")


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

    `scale` is what a word such as million multiplies it by, `start` where its digits begin, `end`
    where all of it ends. `others` are what it may mean as well: with the unit or scale of the
    figure it is joined to, or of a head such as `(€m)`.
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

    numbered = {at for match in _LIST_NUMBER.finditer(text) for at in range(*match.span())}
    heads = _heads(_FIGURE.sub(" ", text))
    behind, begins = None, len(text)
    found = []
    for match in reversed(matches):
        figure = None if match.start() in numbered else _figure(match, text)
        if figure is None or _is_name(match, figure, text):
            continue
        if figure.unit is not None or figure.scale != 1:
            behind = figure
        elif _YEAR.fullmatch(figure.digits):
            behind = None
        else:
            behind = behind if _JOINING.fullmatch(text, match.end(), begins) else None
            meant = [*heads, *([(behind.scale, behind.unit)] if behind else [])]
            figure = replace(figure, others=tuple(replace(figure, scale=scale, unit=unit) for scale, unit in meant))
        begins = match.start()
        if not _needs_none(figure, text):
            found.append(figure)
    return reversed(found)


def small_values(text: str) -> Iterator[Figure]:
    """Yields the small whole numbers that `figures` leaves out and that stand as values, as in "Gold: 4"."""
    text = _with_plain_digits(text)
    for match in _SMALL_VALUE.finditer(text):
        if int(match["digits"]) < SMALL:
            exact = (Reading(Decimal(match["digits"]), Decimal(0)),)
            digits, place = match["digits"], match.span("digits")
            figure = Figure(digits, exact, Decimal(1), None, *place, digits)
            yield replace(figure, is_negative=match["minus"] is not None)


def _heads(text: str) -> list[tuple[Decimal, str | None]]:
    """Returns the scales and units that a text names without a figure: "(in Mio. €)", "Share (%)" over a column."""
    units = [unit for unit in sorted(mentioned_units(text)) if DIMENSIONS[unit] not in ("time", "currency")]
    scales = [scale for scale in sorted(mentioned_scales(text)) if scale != 1]
    return [*((scale, None) for scale in scales), *((Decimal(1), unit) for unit in units)]


def values(text: str) -> Iterator[Figure]:
    """Yields all that may be read as a figure in the sources of a text.

    The more readings, the better.
    """
    whole, text = set(), _with_plain_digits(text)
    for match in _FIGURE.finditer(text):
        if figure := _figure(match, text):
            whole.add(match.span("digits"))
            yield figure
    yield from _values_in_words(text)
    # A row of CSV reads as one number with commas above.
    for match in _SIMPLE.finditer(text):
        if match.span() not in whole:
            exact = (Reading(Decimal(match[0]), Decimal(0)),)
            yield Figure(match[0], exact, Decimal(1), None, *match.span(), match[0])


def small_numbers(text: str) -> set[int]:
    """Returns the whole numbers below 13 in a text, in digits or in words."""
    found = {int(digits) for digits in re.findall(r"(?<![\d.,])\d{1,2}(?![\d]|[.,]\d)", text)}
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {number for number in found if number < SMALL} | {
        _VALUE_OF_WORD[word] for word in words if word in _VALUE_OF_WORD
    }


def whole_values(text: str) -> list[Figure]:
    """Returns the figures of a text in their order, but for those that are a part of another."""
    found = list[Figure]()
    for figure in sorted(values(text), key=lambda each: (each.start, -each.end)):
        if not found or figure.start >= found[-1].end:
            found.append(figure)
    return found


def is_same_in_any_scale(said: Figure, cell: Decimal) -> bool:
    """True if a figure is that of a cell, as exact as it is written, be it in thousands or percent."""
    return any(
        abs(reading.value * said.scale - abs(cell) * factor) <= reading.tolerance * said.scale
        for reading in said.readings
        for factor in _FACTORS
    )


def _values_in_words(text: str) -> Iterator[Figure]:
    for match in _IN_WORDS.finditer(text):
        value = Decimal(_VALUE_OF_WORD[match["word"].lower()])
        exact = (Reading(value, Decimal("0.5")),)
        yield Figure(match[0], exact, Decimal(1), unit_of(match["unit"]), *match.span(), str(value))


def _with_plain_digits(text: str) -> str:
    """Returns a text with the digits and signs of ASCII, and dates such as 25.03.2026 as 25/03/2026."""
    return _DATE.sub(lambda date: date[0].replace(".", "/"), text.translate(_ASCII))


def _figure(match: re.Match[str], text: str) -> Figure | None:
    """Returns the figure that begins here, None if the digits go on a word or another figure."""
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
    width = Decimal(0) if about is None else Decimal("0.5") if about["near"] or about["sign"] else Decimal(1)
    readings = tuple(_readings(match["digits"], _power(match["power"]), width))
    if scale == 1 and unit is None and not about and _YEAR.fullmatch(match["digits"]) and not match["power"]:
        readings = (Reading(Decimal(match["digits"]), Decimal("0.5")),)
    written = text[match.start() - len(currency[0]) if currency else match.start() : match.end()].strip()
    if not readings:
        return None
    sign_at = len(before) - len(currency[0]) if currency else len(before)
    is_negative = _MINUS.search(before[:sign_at]) is not None
    place = match.span()
    return Figure(written, readings, scale, unit, *place, match["digits"], is_negative=is_negative)


def _readings(digits: str, power: Decimal, width: Decimal) -> Iterator[Reading]:
    for written in _decimal_forms(re.sub(r"['’\u00a0\u2009\u202f ]", "", digits)):
        yield Reading(Decimal(written) * power, _tolerance(written, width) * power)


def _decimal_forms(plain: str) -> Iterator[str]:
    """Yields the digits with a decimal point, for each way to read commas and points: the last one may be it."""
    *before, rest = re.split(r"[.,]", plain)
    whole, marks = "".join(before), re.findall(r"[.,]", plain)
    several = bool(marks) and marks.count(marks[-1]) > 1
    if not marks or several or (len(marks) == 1 and len(rest) == 3 and len(whole) <= 3 and whole.strip("0")):
        yield whole + rest
    if marks and not several:
        yield f"{whole}.{rest}"


def _tolerance(written: str, width: Decimal) -> Decimal:
    """Returns the distance allowed between a figure and its source.

    About 30 is 25 to 35, more than 30 is up to 40.
    """
    whole, _, decimals = written.partition(".")
    zeros = len(whole) - len(whole.rstrip("0")) if whole.strip("0") and not decimals else 0
    place = Decimal(10) ** (zeros - len(decimals))
    if width:
        return place if decimals else max(place * width, Decimal(1))
    return place / 2 if decimals or len(whole) - zeros >= _SIGNIFICANT else Decimal("0.5")


def _power(written: str | None) -> Decimal:
    digits = re.sub(r"e|\s?[x×·*]\s?10(?:\^|\*\*)?", "", (written or "e0").lower().translate(_SUPERSCRIPTS), count=1)
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
    before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 12]
    if figure.unit in (None, "%") and (_SURE.search(before[-20:]) or _SURE_AFTER.match(after)):
        return True
    if figure.unit is not None or figure.scale != 1:
        return False
    if _JOINED.match(after) and not re.match(r"[x×](?!\w)", after):
        return True
    if not figure.digits.isdigit():
        return bool(_SECTION_NUMBER.fullmatch(figure.digits) and _SECTION.search(before))
    return bool((len(figure.digits) <= _LABEL_DIGITS and _LABEL.search(before)) or _ACRONYM.search(before))
