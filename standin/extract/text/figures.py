"""Figures in tool results: series of values, the arithmetic they call for, and sentences that state them."""

import re
from dataclasses import dataclass

from standin.extract.text.tables import Grid, number

_SERIES = 8  # so many of a result get a sentence each
_COMPUTED = 4  # so many get arithmetic
_RESULT = re.compile(r"=\s*(-?[\d.,]+(?:e[+-]?\d+)?)\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Series:
    """One measure of one thing, as (time, value as printed), in the order of time; time is empty if undated."""

    label: str
    measure: str
    points: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Returns thing and measure, for people."""
        return ": ".join(part for part in (self.label, self.measure.replace("_", " ")) if part)

    @property
    def moves(self) -> bool:
        """True if there are two times to compare."""
        return self.points[0][0] != self.points[-1][0]

    @property
    def difference(self) -> str:
        """Returns the last minus the first value, as an expression."""
        return " - ".join(_operand(value) for _, value in (self.points[-1], self.points[0]))

    @property
    def percentage(self) -> str:
        """Returns the change in percent of the first value, as an expression; empty if that is zero."""
        first = self.points[0][1]
        return f"({self.difference}) / {_operand(first)} * 100" if number(first) else ""


def series(grid: Grid) -> list[Series]:
    """Returns the series of a result table, in its order; a ranking in time has none."""
    columns = range(len(grid.header))
    time = next((at for at in columns if grid.is_time(at)), None)
    measures = [at for at in columns if at != time and grid.is_number(at)]
    labels = [at for at in columns if at != time and at not in measures]
    points: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in grid.rows:
        label = ", ".join(row[at] for at in labels)
        for at in measures:
            points.setdefault((label, grid.header[at]), []).append((row[time] if time is not None else "", row[at]))
    made = [Series(label, measure, tuple(values)) for (label, measure), values in points.items()]
    return made if all(list(one.points) == sorted(one.points, key=lambda point: point[0]) for one in made) else []


def expressions(grids: list[Grid]) -> list[str]:
    """Returns what is worth calculating: change and relative change of the series that move."""
    moving = [one for grid in grids for one in series(grid) if one.moves][:_COMPUTED]
    return list(dict.fromkeys(made for one in moving for made in (one.difference, one.percentage) if made))


def statements(grids: list[Grid], calculated: dict[str, str]) -> list[str]:
    """Returns sentences with the figures of result tables and of calculator results (expression -> output)."""
    lines: list[str] = []
    for grid in grids:
        lines += [_stated(one, calculated) for one in series(grid)[:_SERIES]] or [_first_row(grid)]
    return list(dict.fromkeys(line[0].upper() + line[1:] for line in lines))


def result_of(output: str) -> str:
    """Returns the value in a calculator's `expression = value`, rounded for reading; empty if there is none."""
    match = _RESULT.search(output.strip().splitlines()[0]) if output.strip() else None
    value = number(match[1]) if match else None
    if value is None:
        return ""
    whole = value == int(value) and abs(value) < 1e15
    return f"{int(value):,}" if whole else f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _stated(one: Series, calculated: dict[str, str]) -> str:
    (start, first), (end, last) = one.points[0], one.points[-1]
    if not one.moves:
        return f"{one.name} was {last} ({end})." if end else f"{one.name} is {last}."
    text = f"{one.name} went from {first} ({start}) to {last} ({end})"
    if by := result_of(calculated.get(one.difference, "")):
        share = result_of(calculated.get(one.percentage, ""))
        text += f", a change of {by}" + (f" ({share} %)" if share else "")
    for word, pick in (("lowest", min), ("highest", max)):
        at = pick(one.points, key=lambda point: number(point[1]) or 0.0)
        text += f"; {word} {at[1]} ({at[0]})" if at not in (one.points[0], one.points[-1]) else ""
    return text + "."


def _first_row(grid: Grid) -> str:
    cells = zip(grid.header, grid.rows[0], strict=True)
    return "First in order: " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in cells) + "."


def _operand(value: str) -> str:
    text = value.replace(",", "").strip()
    return f"({text})" if text.startswith("-") else text
