"""Figures in tool results: series of values, the arithmetic they call for, and sentences that state them."""

import re
from dataclasses import dataclass

from standin.extract.tables import Grid, number

_SERIES = 8  # so many of a result get a sentence each
_COMPUTED = 4  # so many get arithmetic
_RESULT = re.compile(r"=\s*(-?[\d.,]+(?:e[+-]?\d+)?)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Series:
    """One measure of one thing, as (time, value as printed), in the order of time; time is empty if undated."""

    name: str
    points: list[tuple[str, str]]

    @property
    def moves(self) -> bool:
        """True if there are two times to compare."""
        return self.points[0][0] != self.points[-1][0]

    @property
    def difference(self) -> str:
        """Returns the last minus the first value, as an expression."""
        return f"{_operand(self.points[-1][1])} - {_operand(self.points[0][1])}"

    @property
    def percentage(self) -> str:
        """Returns the change in percent of the first value, as an expression; empty if that is zero."""
        first = self.points[0][1]
        return f"({self.difference}) / {_operand(first)} * 100" if number(first) else ""


def series(grid: Grid) -> list[Series]:
    """Returns the series of a result table, in its order."""
    columns = range(len(grid.header))
    time = next((at for at in columns if grid.is_time(at)), None)
    measures = [at for at in columns if at != time and grid.is_number(at)]
    labels = [at for at in columns if at != time and at not in measures]
    points: dict[str, list[tuple[str, str]]] = {}
    for row in grid.rows:
        label = ", ".join(row[at] for at in labels)
        for at in measures:
            name = ": ".join(filter(None, (label, grid.header[at].replace("_", " "))))
            points.setdefault(name, []).append((row[time] if time is not None else "", row[at]))
    return [Series(name, sorted(values, key=lambda point: point[0])) for name, values in points.items()]


def expressions(grids: list[Grid]) -> list[str]:
    """Returns what is worth calculating: change and relative change of the series that move."""
    moving = [one for grid in grids for one in series(grid) if one.moves][:_COMPUTED]
    return list(dict.fromkeys(made for one in moving for made in (one.difference, one.percentage) if made))


def statements(grids: list[Grid], calculated: dict[str, str]) -> list[str]:
    """Returns sentences with the figures of result tables and of calculator results (expression -> output)."""
    lines = [_stated(one, calculated) for grid in grids for one in series(grid)[:_SERIES]]
    return list(dict.fromkeys(line[0].upper() + line[1:] for line in lines))


def result_of(output: str) -> str:
    """Returns the value in a calculator's `expression = value`, rounded for reading; empty if there is none."""
    match = _RESULT.search(output.strip().partition("\n")[0])
    value = number(match[1]) if match else None
    if value is None:
        return ""
    return f"{value:,.2f}".removesuffix(".00") if abs(value) >= 1 else f"{value:.4g}"


def _stated(one: Series, calculated: dict[str, str]) -> str:
    (start, first), (end, last) = one.points[0], one.points[-1]
    if not one.moves:
        return f"{one.name} was {last} ({end})." if end else f"{one.name} is {last}."
    text = f"{one.name} went from {first} ({start}) to {last} ({end})"
    if by := result_of(calculated.get(one.difference, "")):
        share = result_of(calculated.get(one.percentage, ""))
        text += f", a change of {by}" + (f" ({share} %)" if share else "")
    return text + "."


def _operand(value: str) -> str:
    text = value.replace(",", "").strip()
    return f"({text})" if text.startswith("-") else text
