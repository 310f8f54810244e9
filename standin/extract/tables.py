"""Tables as tools print them: descriptions with sample values, Markdown results, and what their figures say."""

import re
from dataclasses import dataclass, field

from standin.extract.words import stems

_TABLE = re.compile(r"^\s*table\s+([\w.\"]+)\s*\((?:[^()]|\([^()]*\))*\)", re.IGNORECASE)
_COLUMN = re.compile(r"^\s++`?+(\"[^\"]++\"|[^:`\"]++)`?+:\s++(.+)$")  # a quoted name stays quoted: queries need it so
_SPAN = re.compile(r"^(-?\d\S*) to (-?\d\S*)$")
_MORE = re.compile(r",?(?<!\s)\s*+(?:(?:\.\.\.|…)\s*+)?and \d++ more\s*$")
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_TIME_NAMES = {"date", "year", "month", "quarter", "week", "day", "time", "period"}
_TIME_VALUE = re.compile(r"(1[5-9]|20|21)\d\d(-\d\d(-\d\d)?([T ].*)?|-?Q[1-4])?")
_SERIES = 8  # so many of a result get a sentence each
_COMPUTED = 4  # so many get arithmetic
_RESULT = re.compile(r"=\s*(-?[\d.,]+(?:e[+-]?\d+)?)\s*$", re.IGNORECASE)


@dataclass
class Table:
    """A table as a tool described it: `values` of columns with names, `spans` (from, to) of columns with figures."""

    name: str
    text: str
    values: dict[str, list[str]] = field(default_factory=dict)
    spans: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def time(self) -> tuple[str, str, str] | None:
        """Returns name, first and last time of the column that dates the rows; None if there is none."""
        dated = [(name, *span) for name, span in self.spans.items() if all(map(_TIME_VALUE.fullmatch, span))]
        return next((entry for entry in dated if _names_time(entry[0])), None)


@dataclass(frozen=True)
class Grid:
    """A result: a Markdown table."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Returns the table again."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def is_time(self, at: int) -> bool:
        """True if a column dates its rows."""
        return _names_time(self.header[at]) and all(_TIME_VALUE.fullmatch(row[at]) for row in self.rows)

    def is_number(self, at: int) -> bool:
        """True if a column holds figures."""
        return all(number(row[at]) is not None for row in self.rows) and not self.is_time(at)


def parse_tables(text: str) -> list[Table]:
    """Returns the tables that a tool's output describes: a line `table name (columns)`, then a line per column."""
    tables: list[Table] = []
    for line in text.splitlines():
        if match := _TABLE.match(line):
            tables.append(Table(match[1].strip('"'), line))
        elif tables and (column := _COLUMN.match(line)):
            name, listed = column[1], column[2]
            if span := _SPAN.match(listed):
                tables[-1].spans[name] = (span[1], span[2])
            else:
                values = _VALUE.findall(_MORE.sub("", listed))
                tables[-1].values[name] = [quoted.replace("''", "'") or plain for quoted, plain in values]
    return tables


def parse_grids(text: str) -> list[Grid]:
    """Returns the Markdown tables of a text that have at least one row."""
    grids: list[Grid] = []
    lines = [_cells(line) if line.strip().startswith("|") else [] for line in text.splitlines()]
    for at, header in enumerate(lines[:-1]):
        if not header or not lines[at + 1] or not all(re.fullmatch(r":?-+:?", cell) for cell in lines[at + 1]):
            continue
        end = next((n for n in range(at + 2, len(lines)) if len(lines[n]) != len(header)), len(lines))
        if end > at + 2:
            grids.append(Grid(header, lines[at + 2 : end]))
    return grids


def number(text: str) -> float | None:
    """Returns the number that a cell holds; None if it holds none."""
    try:
        return float(text.replace(",", "").replace("_", "x"))
    except ValueError:
        return None


def _names_time(column: str) -> bool:
    return not _TIME_NAMES.isdisjoint(stems(column.replace("_", " "))[:2])


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


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
