"""Times in questions: years, quarters, months, days, and the conditions that select their rows."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

from temporal_supervisor.standin.lookup.question_words import QuestionWords
from temporal_supervisor.standin.lookup.table_columns import Column

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_MONTHS = _MONTH_NAMES.split()
_MONTH_ENDS = {1: "03", 2: "06", 3: "09", 4: "12"}
_YEAR_CHARS, _MONTH_CHARS, _DAY_CHARS = 4, 7, 10
_YEAR = re.compile(r"(?:1[5-9]|20|21)\d\d")
_QUARTERS = {"q1": 1, "q2": 2, "q3": 3, "q4": 4}
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
}
_RANGES = ("from", "between", "since", "after", "until", "before")


@dataclass(frozen=True)
class Period:
    """A time from `low` to `high`, as exact as each is known: `2025`, `2025-03`, `2025-03-14`."""

    low: str
    high: str
    said: str

    @classmethod
    def of(cls, moment: str) -> "Period":
        """Returns the period that is one year, month or day."""
        return cls(moment, moment, moment)


def periods_in(words: QuestionWords, time: Column) -> list[Period]:
    """Takes the times that a question names, and returns them in order.

    `since` and `before` reach to the table's ends.
    """
    found: list[tuple[int, Period]] = []
    at = 0
    while at < len(words.texts):
        period, size = _period_at(words, at, time) if words.open[at] else (None, 1)
        if period is not None:
            words.explain(at, size)
            found.append((at, period))
        at += size
    reached: list[Period] = []
    for place, period in found:
        before = words.word_before(place)
        is_range = before in ("since", "until", "before", "after") and len(found) == 1
        reached.append(_reaching(before, period, time) if is_range else period)
        if is_range:
            words.explain_any(before)
    return sorted(reached, key=lambda period: period.low)


def _period_at(words: QuestionWords, at: int, time: Column) -> tuple[Period | None, int]:
    """Returns the period that begins at a word and its number of words; None and 1 without one."""
    texts = [text.lower() for text in words.texts[at : at + 4]] + [""] * 4
    first, second, third, fourth = texts[:4]
    year, only = _YEAR.fullmatch, _only_year(time)
    if (
        year(first)
        and re.fullmatch(r"0[1-9]|1[0-2]", second)
        and f"{first}-{second}" in words.question
    ):
        if re.fullmatch(r"\d\d", third) and f"{first}-{second}-{third}" in words.question:
            return Period.of(f"{first}-{second}-{third}"), 3
        return Period.of(f"{first}-{second}"), 2
    if first in _QUARTERS and (year(second) or only):
        return _quarter(_QUARTERS[first], second if year(second) else only), 2 if year(
            second
        ) else 1
    if year(first) and second in _QUARTERS:
        return _quarter(_QUARTERS[second], first), 2
    if first in _ORDINALS and second == "quarter":
        return _ordinal_quarter(_ORDINALS[first], third, fourth, only)
    if first in _MONTHS and (first != "may" or words.texts[at] == "May"):
        month = f"{_MONTHS.index(first) + 1:02}"
        if year(second):
            return Period.of(f"{second}-{month}"), 2
        return (Period.of(f"{only}-{month}"), 1) if only else (None, 1)
    if year(first):
        return Period.of(first), 1
    return None, 1


def _only_year(time: Column) -> str:
    """Returns the year of all rows; empty if they are of several."""
    low, high = time.low[:_YEAR_CHARS], time.high[:_YEAR_CHARS]
    return low if low == high and low else ""


def _ordinal_quarter(number: int, third: str, fourth: str, only: str) -> tuple[Period | None, int]:
    """Returns the quarter of `first quarter of 2025`, and its words; None and 1 without a year.

    `third` and `fourth` are the words behind `quarter`, `only` is the year of all rows or empty.
    """
    if _YEAR.fullmatch(fourth):
        return _quarter(number, fourth), 4
    if _YEAR.fullmatch(third):
        return _quarter(number, third), 3
    return (_quarter(number, only), 2) if only else (None, 1)


def _quarter(number: int, year: str) -> Period:
    end = _MONTH_ENDS[number]
    return Period(f"{year}-{int(end) - 2:02}", f"{year}-{end}", f"quarter {number} of {year}")


def _reaching(word: str, period: Period, time: Column) -> Period:
    size = len(period.low)
    match word:
        case "since":
            return Period(period.low, time.high[:size], f"since {period.said}")
        case "after":
            return Period(_moved(period.high, 1), time.high[:size], f"after {period.said}")
        case "before":
            return Period(time.low[:size], _moved(period.low, -1), f"before {period.said}")
        case _:
            return Period(time.low[:size], period.high, f"until {period.said}")


def _moved(moment: str, by: int) -> str:
    """Returns the year, month or day one later or earlier, written as far as this one."""
    year, *rest = map(int, moment.split("-"))
    if not rest:
        return f"{year + by:04}"
    if len(rest) == 1:
        months = year * 12 + rest[0] - 1 + by
        return f"{months // 12:04}-{months % 12 + 1:02}"
    return str(date(year, *rest) + timedelta(days=by))


def part_of(time: Column, size: int) -> str:
    """Returns the expression for the first characters of a time: its year, month or day.

    With size 0 it is the expression for the quarter.
    """
    if time.is_years:
        return time.sql
    if size == 0:
        return f"CAST(year({time.sql}) AS VARCHAR) || '-Q' || CAST(quarter({time.sql}) AS VARCHAR)"
    return f"substr(CAST({time.sql} AS VARCHAR), 1, {size})"


def condition_on(time: Column, periods: list[Period]) -> str:
    """Returns the condition for the rows of a period, or from the first to the last of several."""
    low, high = periods[0].low, periods[-1].high
    if time.is_years:
        return f"{time.sql} BETWEEN {low[:_YEAR_CHARS]} AND {high[:_YEAR_CHARS]}"
    size = min(len(low), len(high))
    part = part_of(time, size)
    return (
        f"{part} = '{low}'" if low == high else f"{part} BETWEEN '{low[:size]}' AND '{high[:size]}'"
    )
