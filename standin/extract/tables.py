"""Tables as tools print them: descriptions with sample values, and Markdown results."""

import re
from dataclasses import dataclass, field

from standin.extract.words import stems

_TABLE = re.compile(r"^\s*table\s+([\w.\"]+)\s*\((?:[^()]|\([^()]*\))*\)", re.IGNORECASE)
_COLUMN = re.compile(r"^\s++[`\"]?+([^:`\"]++)[`\"]?+:\s++(.+)$")
_SPAN = re.compile(r"^(-?\d\S*) to (-?\d\S*)$")
_MORE = re.compile(r",?(?<!\s)\s*+(?:(?:\.\.\.|…)\s*+)?and \d++ more\s*$")
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_TIME_NAMES = {"date", "year", "month", "quarter", "week", "day", "time", "period"}
_TIME_VALUE = re.compile(r"(1[5-9]|20|21)\d\d(-\d\d(-\d\d)?([T ].*)?|-?Q[1-4])?")


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
