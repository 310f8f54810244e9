"""Years, months and days as texts write them, and the spans of time between them."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import combinations

_MONTHS = (
    "january|januar|janvier|enero",
    "february|februar|février|febrero",
    "march|märz|mars|marzo",
    "april|avril|abril",
    "may|mai|mayo",
    "june|juni|juin|junio",
    "july|juli|juillet|julio",
    "august|août|agosto",
    "september|septembre|septiembre",
    "october|oktober|octobre|octubre",
    "november|novembre|noviembre",
    "december|dezember|décembre|diciembre",
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split("|")}
_SHORT = {name[:3]: number for name, number in _MONTH_OF.items() if name.isascii()}
_LONGEST_FIRST = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
MONTH = rf"(?:{_LONGEST_FIRST}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"

_YEAR_DIGITS = r"1[5-9]\d\d|20\d\d"
_WHOLE_YEAR = re.compile(_YEAR_DIGITS)
# "in 1994", "2019/20"; not "$1994", "1994%", "1,994".
YEAR = re.compile(
    rf"(?<![\d.,$€£])(?P<year>{_YEAR_DIGITS})"
    r"(?:\s?[/–-]\s?(?P<next>\d\d)(?!\d))?(?![\d%]|[.,]\d)"
)
# The end of what is before a year that bounds a time: "since ", "between the years "; not "in ".
_SINCE = re.compile(
    r"(?:since|from|between|until|till|by|after|before|through|over"
    r"|seit|von|zwischen|bis|vor|nach|ab|depuis|avant|après|entre|desde|hasta)"
    r"(?:\s[^\W\d]+){0,2}\s\Z",
    re.IGNORECASE,
)
_SINCE_CHARS = 40  # of what is before a year
# "2004-05-02", "2004-05"; not "12004-05".
_ISO = re.compile(
    rf"(?<![\d-])(?P<year>{_YEAR_DIGITS})-(?P<month>0[1-9]|1[0-2])"
    r"(?:-(?P<day>0[1-9]|[12]\d|3[01]))?(?!\d)"
)
# "2.5.2004", "02/05/2004"; not "2.13.2004".
_DOTTED = re.compile(
    r"(?<![\d.])(?P<day>\d{1,2})[./](?P<month>0?[1-9]|1[0-2])"
    rf"[./](?P<year>{_YEAR_DIGITS})(?!\d)"
)
# "2 May 2004", "May 2, 2004", "May".
_NAMED = re.compile(
    rf"(?:(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s)?(?<!\w)(?P<month>{MONTH})"
    r"(?:\s(?P<late>\d{1,2})(?:st|nd|rd|th)?(?!\d))?"
    rf"(?:,?\s(?:of\s)?(?P<year>{_YEAR_DIGITS})(?!\d))?",
    re.IGNORECASE,
)
# "in May"; not "in May 2004", "in May 2".
_BARE_MONTH = re.compile(
    rf"\b(?:in|im|en|of)\s(?P<month>{MONTH})(?!\w)(?!\.?,?\s(?:of\s)?\d)",
    re.IGNORECASE,
)
_ANY_YEAR = re.compile(r"(?<![\d.,])[12]\d{3}(?![\d]|[.,]\d)")  # "1066"; not "1,066", "1066.5"
_MOST = 40  # dates of a text that spans are made of
_DAYS_OF_UNIT = {"days": 1, "weeks": 7}
_DAYS_OF_YEAR = 365.25
_ANY_COMMON_YEAR = 2001  # of dates without a year

Day = tuple[int, int, int]
"""A date as year, month and day, with 0 for what is not given."""


def month_name(number: int) -> str:
    """Returns the English name of a month, from 1 for January."""
    return _MONTHS[number - 1].partition("|")[0].capitalize()


def is_year(written: str) -> bool:
    """True for digits that may be a year, and nothing else."""
    return _WHOLE_YEAR.fullmatch(written) is not None


def years_in(text: str) -> tuple[set[int], set[int]]:
    """Returns the years that a text speaks of, and those that bound a time, as in "since 1990"."""
    own = set[int]()
    bounds = set[int]()
    for match in YEAR.finditer(text):
        before = text[max(0, match.start() - _SINCE_CHARS) : match.start()]
        years = bounds if _SINCE.search(before) else own
        year = int(match["year"])
        years.add(year)
        if match["next"] and int(match["next"]) == (year + 1) % 100:  # 2019/20
            years.add(year // 100 * 100 + int(match["next"]))
    return own, bounds


def dates_in(text: str) -> set[Day]:
    """Returns the dates of a text.

    Examples: "March 2010", 2010-03-01, "14 July", and the month of "in March".
    """
    bare = {(0, _month(match["month"]), 0) for match in _BARE_MONTH.finditer(text)}
    return {*_dates(text), *bare}


def named_date(text: str) -> Day | None:
    """Returns the first date that names its month, as "May 2" or "May" alone; None without one."""
    match = _NAMED.search(text)
    return None if match is None else _named_day(match)


def months_of(text: str) -> set[Day]:
    """Returns the dates of a text without their days.

    Of "March 22-25, 2012" one day is read, and others are meant, too.
    """
    return {(year, month, 0) for year, month, _ in _dates(text)}


def may_be_one(first: Day, second: Day) -> bool:
    """True if nothing that both dates give differs."""
    return all(one == other for one, other in zip(first, second, strict=True) if one and other)


def is_date(text: str) -> bool:
    """True for a text that is a date and nothing else."""
    return any(pattern.fullmatch(text.strip()) for pattern in (_ISO, _DOTTED, _NAMED))


def date_spans(text: str) -> list[tuple[int, int]]:
    """Returns the spans of the dates in a text that have a day."""
    found = [match for pattern in (_ISO, _DOTTED, _NAMED) for match in pattern.finditer(text)]
    return [match.span() for match in found if match["day"] or match.groupdict().get("late")]


def spans_in(texts: Iterable[str]) -> dict[str, set[int]]:
    """Returns the spans between two years or two dates of one text, by units of time."""
    spans: dict[str, set[int]] = {"years": set(), "months": set(), "weeks": set(), "days": set()}
    for text in texts:
        years = list(dict.fromkeys(map(int, _ANY_YEAR.findall(text))))[:_MOST]
        spans["years"] |= {abs(first - second) for first, second in combinations(years, 2)}

        dates = list(dict.fromkeys(_dates(text)))[:_MOST]
        for (year, month, day), (other_year, other_month, other_day) in combinations(dates, 2):
            if bool(year) != bool(other_year):  # 14 July and 22 September 2025
                year = other_year = year or other_year
            spans["months"].add(abs((year * 12 + month) - (other_year * 12 + other_month)))
            if not day or not other_day:
                continue
            apart = abs(_ordinal(year, month, day) - _ordinal(other_year, other_month, other_day))
            for unit, days in _DAYS_OF_UNIT.items():
                spans[unit] |= {apart // days, round(apart / days)}
            spans["years"].add(round(apart / _DAYS_OF_YEAR))
    return {unit: found - {0} for unit, found in spans.items()}


def _ordinal(year: int, month: int, day: int) -> int:
    """Returns the number of a day among all days; of no real day that of the first of its month."""
    try:
        return date(year or _ANY_COMMON_YEAR, month, day).toordinal()
    except ValueError:
        return date(year or _ANY_COMMON_YEAR, month, 1).toordinal()


def _dates(text: str) -> Iterator[Day]:
    """Yields the dates of a text that have a day or a year."""
    for pattern in (_ISO, _DOTTED):
        for match in pattern.finditer(text):
            yield int(match["year"]), int(match["month"]), int(match["day"] or 0)
    for match in _NAMED.finditer(text):
        year, month, day = _named_day(match)
        if day or year:
            yield year, month, day


def _named_day(match: re.Match[str]) -> Day:
    """Returns the date of a match of `_NAMED`."""
    day = match["day"] or match["late"]
    return int(match["year"] or 0), _month(match["month"]), int(day or 0)


def _month(name: str) -> int:
    """Returns the number of a month by its name or a short form of it, such as "Sept."."""
    word = name.lower().strip(".")
    return _MONTH_OF.get(word) or _SHORT.get(word[:3], 1)
