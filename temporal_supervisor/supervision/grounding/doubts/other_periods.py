"""Doubts about the months that a query reads, where the question names a part of a year.

Example: `day BETWEEN '2025-06-01' AND '2025-12-31'` for the second half of 2025, which begins in
July. Only a query with two dates, or with a list of months, is compared.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry
from temporal_supervisor.supervision.grounding.doubts.query_shape import QueryShape
from temporal_supervisor.supervision.grounding.wording.time_words import (
    YEAR,
    Day,
    dates_in,
    month_name,
)

_FIRST = "first|1st|1[.]|erste[nrs]?"
_SECOND = "second|2nd|2[.]|zweite[nrs]?"
_THIRD = "third|3rd|3[.]|dritte[nrs]?"
_FOURTH = "fourth|4th|4[.]|vierte[nrs]?"
_ORDINALS = [re.compile(words, re.IGNORECASE) for words in (_FIRST, _SECOND, _THIRD, _FOURTH)]
# Behind "half" or "quarter": no "of" that leads to something else than a year.
_OF_NO_YEAR = r"(?! \s of \s (?! the\s(?:fiscal\s)?year | \d{4} ) )"

# "second half of 2025", "first half-year 2025", "H2 2025", "2. Halbjahr 2025"; not "the second half
# of the match".
_HALF = re.compile(
    rf"""
    \b (?P<ordinal> {_FIRST} | {_SECOND} | last ) \s
        (?: half (?: [ -]year )? {_OF_NO_YEAR} | halbjahr\w* )
    | \b h (?P<number>[12]) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)

# "third quarter of 2025", "Q3 2025", "3. Quartal"; not "the third quarter of the game".
_QUARTER = re.compile(
    rf"""
    \b (?P<ordinal> {_FIRST} | {_SECOND} | {_THIRD} | {_FOURTH} | last ) \s
        (?: quarter {_OF_NO_YEAR} | quartal\w* )
    | \b q (?P<number>[1-4]) \b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PARTS = ((_HALF, 6), (_QUARTER, 3))  # each with its months

# Words with which a month is one end of a longer time: "since March 2024".
_BOUNDS = re.compile(
    r"\b(?:since|from|between|until|till|to|through|before|after|by"
    r"|seit|von|zwischen|bis|vor|nach|ab)\b",
    re.IGNORECASE,
)

# Words of a question that compares a part of a year with another one.
_COMPARES = re.compile(
    r"\b(?:between|compared?|versus|vs|than|from"
    r"|chang\w*|differ\w*|increas\w*|decreas\w*|gr[eo]w\w*"
    r"|zwischen|verglichen|gegenüber|als|änder\w*|unterschied\w*|anstieg\w*|stieg|sank)\b",
    re.IGNORECASE,
)

# A text that is a date: "2025-06-01", "2025-06", "2025-06-01 00:00:00".
_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>\d\d))?(?:[ T].*)?")

# "month(day) between 6 and 12", "extract(month from day) in (7, 8)", in small letters.
_MONTHS = re.compile(
    r"""
    \b month \b [^<>=;]{0,80}?
    (?: \b between \s+ (?P<low>\d{1,2}) \s+ and \s+ (?P<high>\d{1,2}) \b
      | \b in \s* \( \s* (?P<listed> \d{1,2} (?: \s*,\s* \d{1,2} )* ) \s* \) )
    """,
    re.VERBOSE,
)
_LAST_DAYS = 28  # from this day on a date may be the last one of its month


@dataclass(frozen=True)
class PartOfYear:
    """Some months of a year, from the `first` to the `last`; the year is 0 if none is named."""

    words: str
    year: int
    first: int
    last: int

    @property
    def months(self) -> str:
        """Its months, as in `July to December`."""
        first = month_name(self.first)
        return first if self.first == self.last else f"{first} to {month_name(self.last)}"

    def begins_at(self, date: Day) -> bool:
        """True if a date is its first day, or the day before."""
        year, month, day = date
        if (month, day) in ((self.first, 0), (self.first, 1)):
            return self.year in (0, year)
        is_day_before = month % 12 + 1 == self.first and day >= _LAST_DAYS
        year_before = self.year - 1 if self.first == 1 else self.year
        return is_day_before and (self.year == 0 or year == year_before)

    def ends_at(self, date: Day) -> bool:
        """True if a date is its last day, or the day after."""
        year, month, day = date
        if month == self.last and (day == 0 or day >= _LAST_DAYS):
            return self.year in (0, year)
        is_day_after = month == self.last % 12 + 1 and day == 1
        year_after = self.year + 1 if self.last == 12 else self.year
        return is_day_after and (self.year == 0 or year == year_after)


def other_period(inquiry: Inquiry) -> Iterator[str]:
    """Yields the months that queries read in place of those that the question names."""
    period = period_of(inquiry.question)
    if period is None:
        return

    only = inquiry.only_query
    shapes = inquiry.shapes if only is None else [only.shape]
    read: list[str] = []
    for shape in shapes:
        time = _time_read(shape, period)
        if time is None:
            continue
        words, is_asked_for = time
        if is_asked_for:
            return
        read.append(words)
    if read:
        yield f"the query reads {read[-1]}, and {period.words} is {period.months}"


def period_of(question: str) -> PartOfYear | None:
    """Returns the only part of a year that a question names: a half, a quarter or a month."""
    years = {int(found["year"]) for found in YEAR.finditer(question)}
    if len(years) > 1 or _COMPARES.search(question):
        return None
    year = next(iter(years), 0)

    found = [*_parts_of_a_year(question, year)]
    return found[0] if len(found) == 1 else None


def _parts_of_a_year(question: str, year: int) -> Iterator[PartOfYear]:
    for pattern, size in _PARTS:
        for match in pattern.finditer(question):
            last = size * _number_of(match, 12 // size)
            yield PartOfYear(_named(match, year), year, last - size + 1, last)

    if _BOUNDS.search(question):
        return
    for own_year, month, day in sorted(dates_in(question)):
        is_month = own_year and month and not day
        if is_month:
            yield PartOfYear(f"{month_name(month)} {own_year}", own_year, month, month)


def _number_of(match: re.Match[str], count: int) -> int:
    """Returns the number of a part of a year that has `count` of them, from 1."""
    if match["number"]:
        return int(match["number"])
    for number, words in enumerate(_ORDINALS, 1):
        if words.fullmatch(match["ordinal"]):
            return number
    return count  # "last"


def _named(match: re.Match[str], year: int) -> str:
    words = match[0].strip()
    is_short = match["number"] is not None
    words = words.upper() if is_short else f"the {words}"
    return f"{words} of {year}" if year else words


def _time_read(shape: QueryShape, period: PartOfYear) -> tuple[str, bool] | None:
    """Returns the words for the time that a query reads, and True if it is the period.

    Examples of words: `2025-06-01 to 2025-12-31`, `months 6 to 12`. None for a query without two
    dates or a list of months.
    """
    listed = _MONTHS.search(shape.bare)
    if listed is not None:
        months = _listed_months(listed)
        is_period = months == {*range(period.first, period.last + 1)}
        return f"months {min(months)} to {max(months)}", is_period

    dates: dict[str, Day] = {}
    for text in shape.chosen:
        day = _day(text)
        if day is not None:
            dates[text] = day
    if len(dates) != 2:
        return None
    low, high = sorted(dates)
    return f"{low} to {high}", period.begins_at(dates[low]) and period.ends_at(dates[high])


def _listed_months(listed: re.Match[str]) -> frozenset[int]:
    if listed["low"] is not None:
        low, high = sorted([int(listed["low"]), int(listed["high"])])
        return frozenset(range(low, high + 1))
    return frozenset(int(month) for month in listed["listed"].split(","))


def _day(text: str) -> Day | None:
    """Returns the day of a text that is a date; None for any other."""
    date = _DATE.fullmatch(text)
    if date is None:
        return None
    return int(date["year"]), int(date["month"]), int(date["day"] or 0)
