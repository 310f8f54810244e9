"""Figures in tool results: series of values, the arithmetic they call for, and sentences that state them."""

import re
from dataclasses import dataclass

from standin.tables import Grid, number, spoken

_SERIES = 8  # so many get a sentence each
_COMPUTED = 4  # so many get arithmetic
_RESULT = re.compile(r"=\s*(-?[\d.,]+(?:e[+-]?\d+)?)\s*$", re.IGNORECASE)
_DERIVED = ("first_", "last_", "change")


@dataclass(frozen=True)
class Series:
    """One measure of one thing, as (time, value as printed), in the order of time; time is empty if undated."""

    label: str
    measure: str
    points: tuple[tuple[str, str], ...]

    @property
    def first(self) -> str:
        """The first value."""
        return self.points[0][1]

    @property
    def last(self) -> str:
        """The last value."""
        return self.points[-1][1]

    @property
    def name(self) -> str:
        """What it shows, for people."""
        return f"{self.label}: {spoken(self.measure)}" if self.label else spoken(self.measure)


def series(grid: Grid) -> list[Series]:
    """The series of a result table, in its order; tables of derived figures and rankings in time have none."""
    if any(name.startswith(_DERIVED) for name in grid.header):
        return []
    columns = range(len(grid.header))
    time = next((at for at in columns if grid.is_time(at)), None)
    measures = [at for at in columns if at != time and grid.is_number(at)]
    labels = [at for at in columns if at != time and at not in measures]
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in grid.rows:
        label = ", ".join(row[at] for at in labels)
        for at in measures:
            found.setdefault((label, grid.header[at]), []).append((row[time] if time is not None else "", row[at]))
    made = [Series(label, measure, tuple(points)) for (label, measure), points in found.items()]
    return made if all(one.points == tuple(sorted(one.points)) for one in made) else []


def changes(grids: list[Grid]) -> list[Series]:
    """The series that have a beginning and an end to compare."""
    moving = [one for grid in grids for one in series(grid) if len({time for time, _ in one.points}) > 1]
    return moving[:_SERIES]


def pairs(grids: list[Grid]) -> list[tuple[Series, Series]]:
    """First and second thing of each table, measure by measure, at their last common time."""
    found = []
    for grid in grids:
        for measure in dict.fromkeys(one.measure for one in series(grid)):
            same = [one for one in series(grid) if one.measure == measure]
            if len(same) > 1 and same[0].points[-1][0] == same[1].points[-1][0]:
                found.append((same[0], same[1]))
    return found[:_COMPUTED]


def expressions(grids: list[Grid]) -> list[str]:
    """What is worth calculating: change and relative change of each series, the ratio of what is compared."""
    wanted = [made for one in changes(grids)[:_COMPUTED] for made in (difference(one), percentage(one)) if made]
    return list(dict.fromkeys([*wanted, *(made for one in pairs(grids) if (made := ratio(*one)))]))


def difference(one: Series) -> str:
    """Last minus first value."""
    return f"{_plain(one.last)} - {_plain(one.first)}"


def percentage(one: Series) -> str:
    """The change in percent of the first value; empty when that is zero."""
    return f"({difference(one)}) / {_plain(one.first)} * 100" if number(one.first) else ""


def ratio(one: Series, other: Series) -> str:
    """The first thing's last value divided by the other's; empty when that is zero."""
    return f"{_plain(one.last)} / {_plain(other.last)}" if number(other.last) else ""


def statements(grids: list[Grid], calculated: dict[str, str]) -> list[str]:
    """Sentences with the figures of result tables and of calculator results (expression -> output)."""
    said: list[str] = []
    for grid in grids:
        moved = [_change(one, calculated) for one in changes([grid])]
        compared = [_ratio(one, other, calculated) for one, other in pairs([grid]) if ratio(one, other) in calculated]
        said += [*moved, *compared] or [_plainly(one) for one in series(grid)[:_SERIES]] or [_ranked(grid)]
    return list(dict.fromkeys(one[0].upper() + one[1:] for one in said))


def result_of(output: str) -> str:
    """The value in a calculator's `expression = value`, rounded for reading; empty when there is none."""
    found = _RESULT.search(output.strip().splitlines()[0]) if output.strip() else None
    value = number(found.group(1)) if found else None
    return "" if value is None else readable(value)


def readable(value: float) -> str:
    """A number with thousands separators and two decimals at most; small ones keep four significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _change(one: Series, calculated: dict[str, str]) -> str:
    (start, first), (end, last) = one.points[0], one.points[-1]
    text = f"{one.name} went from {first} ({start}) to {last} ({end})"
    if by := result_of(calculated.get(difference(one), "")):
        text += f", a change of {by}"
        if share := result_of(calculated.get(percentage(one), "")):
            text += f" ({share} %)"
    if len(one.points) > 2:
        low, high = (pick(one.points, key=lambda p: number(p[1]) or 0.0) for pick in (min, max))
        inside = [("lowest", low), ("highest", high)]
        text += "".join(
            f"; {word} {at[1]} ({at[0]})" for word, at in inside if at not in (one.points[0], one.points[-1])
        )
    return text + "."


def _ratio(one: Series, other: Series, calculated: dict[str, str]) -> str:
    when = f" in {one.points[-1][0]}" if one.points[-1][0] else ""
    times = result_of(calculated[ratio(one, other)])
    return f"{spoken(one.measure)}{when}: {one.label} {one.last}, {other.label} {other.last}, a ratio of {times}."


def _plainly(one: Series) -> str:
    time, value = one.points[-1]
    return f"{one.name} was {value} ({time})." if time else f"{one.name} is {value}."


def _ranked(grid: Grid) -> str:
    first = dict(zip(grid.header, grid.rows[0], strict=True))
    return "First in order: " + ", ".join(f"{spoken(name)} {value}" for name, value in first.items()) + "."


def _plain(value: str) -> str:
    text = value.replace(",", "").strip()
    return f"({text})" if text.startswith("-") else text
