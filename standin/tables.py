"""Tables as tools print them: schemas with sample values, and Markdown results."""

import re
from dataclasses import dataclass, field

from standin.words import stem, words

_SCHEMA = re.compile(
    r"^\s*(?:[-*]\s*|create\s+)?table\s+[`\"]?([\w.]+)[`\"]?\s*\(((?:[^()]|\([^()]*\))*)\)\s*;?\s*(?::\s*(.*))?$",
    re.IGNORECASE,
)
_ROWS = re.compile(r"\bRows:\s*([\d,]+)")
_VALUES = re.compile(r"^\s+[`\"]?([^:`\"]+)[`\"]?:\s*(.*)$")
_SPAN = re.compile(r"^(\S.*?) to (\S.*)$")
_MORE = re.compile(r",?\s*(?:\.\.\.|…)?\s*and (\d+) more\s*$")
_COLUMN = re.compile(r"^[`\"]?(.+?)[`\"]?\s+([A-Za-z]+(?:\([\d,\s]+\))?)(?:\s.*)?$")
_NUMERIC = re.compile(r"INT|DOUBLE|FLOAT|DECIMAL|REAL|NUMERIC|NUMBER", re.IGNORECASE)
_DATED = re.compile(r"DATE|TIMESTAMP", re.IGNORECASE)
_TIME_WORDS = ("date", "year", "month", "quarter", "week", "day", "time", "period")
_TIME_VALUE = re.compile(r"(1[5-9]|20|21)\d\d(-\d\d(-\d\d)?([T ].*)?)?|(1[5-9]|20|21)\d\d-?Q[1-4]")
_UNITS = frozenset(
    [
        "year",
        "years",
        "usd",
        "eur",
        "gbp",
        "dollars",
        "percent",
        "pct",
        "share",
        "thousands",
        "millions",
        "billions",
        "kg",
        "km",
        "gwh",
        "mwh",
        "kwh",
        "twh",
        "tonnes",
    ]
)


@dataclass
class Column:
    """A column; `values` of text columns, `low` and `high` of others, where the tool printed them."""

    name: str
    type: str
    values: list[str] = field(default_factory=list)
    more: int = 0
    low: str = ""
    high: str = ""

    @property
    def is_time(self) -> bool:
        """Whether rows are dated by it."""
        return bool(_DATED.search(self.type)) or (
            any(word in _TIME_WORDS for word in name_stems(self.name)[:2])
            and (not self.low or bool(_TIME_VALUE.fullmatch(self.low)))
        )

    @property
    def is_measure(self) -> bool:
        """Whether it holds figures."""
        return bool(_NUMERIC.search(self.type)) and not self.is_time and "id" not in name_stems(self.name)

    @property
    def is_text(self) -> bool:
        """Whether it names things."""
        return not (self.is_time or _NUMERIC.search(self.type) or self.type.upper().startswith("BOOL"))

    @property
    def distinct(self) -> int:
        """How many values it has."""
        return len(self.values) + self.more


@dataclass
class Table:
    """A table as a tool described it."""

    name: str
    columns: list[Column]
    description: str = ""
    rows: int = 0

    @property
    def time(self) -> Column | None:
        """The column that dates rows: a real date first."""
        timed = [column for column in self.columns if column.is_time]
        return min(timed, key=lambda c: not _DATED.search(c.type), default=None)

    @property
    def measures(self) -> list[Column]:
        """The columns with figures."""
        return [column for column in self.columns if column.is_measure]

    @property
    def texts(self) -> list[Column]:
        """The columns with names."""
        return [column for column in self.columns if column.is_text]


@dataclass(frozen=True)
class Grid:
    """A result: a Markdown table."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table again."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def is_time(self, at: int) -> bool:
        """Whether a column dates its rows."""
        named = any(word in _TIME_WORDS for word in name_stems(self.header[at])[:2])
        return named and all(_TIME_VALUE.fullmatch(row[at]) for row in self.rows)

    def is_number(self, at: int) -> bool:
        """Whether a column holds figures."""
        return all(number(row[at]) is not None for row in self.rows) and not self.is_time(at)


def parse_tables(text: str) -> list[Table]:
    """The tables that a tool's output describes, one `table name (column TYPE, ...)` line each."""
    found: list[Table] = []
    for line in text.splitlines():
        if match := _SCHEMA.match(line):
            rows = _ROWS.search(match.group(3) or "")
            columns = [_column(part) for part in re.split(r",\s*(?![^()]*\))", match.group(2)) if part.strip()]
            found.append(
                Table(match.group(1), columns, match.group(3) or "", int(rows.group(1).replace(",", "")) if rows else 0)
            )
        elif found and (values := _VALUES.match(line)):
            _describe(found[-1], values.group(1).strip(), values.group(2).strip())
    return found


def parse_grids(text: str) -> list[Grid]:
    """The Markdown tables of a text that have at least one row."""
    grids: list[Grid] = []
    lines = [_cells(line) if line.strip().startswith("|") else None for line in text.splitlines()]
    for at, cells in enumerate(lines[:-1]):
        ruler = lines[at + 1]
        if cells is None or ruler is None or not all(re.fullmatch(r":?-+:?", cell) for cell in ruler):
            continue
        rows = []
        for row in lines[at + 2 :]:
            if row is None or len(row) != len(cells):
                break
            rows.append(row)
        if rows:
            grids.append(Grid(cells, rows))
    return grids


def number(text: str) -> float | None:
    """The number that a cell holds; None when it holds none."""
    try:
        return float(text.replace(",", "").replace("_", "x"))
    except ValueError:
        return None


def name_stems(name: str) -> list[str]:
    """The stems of a column's name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.replace("_", " "))
    return [stem(word) for word in words(spaced)]


def subject_stems(name: str) -> list[str]:
    """The stems of a column's name without its unit."""
    parts = re.split(r"[_\s]+", name)
    return name_stems("_".join(parts[:-1] if len(parts) > 1 and parts[-1].lower() in _UNITS else parts))


def spoken(name: str) -> str:
    """A column's name for people: its unit in parentheses."""
    parts = re.split(r"[_\s]+", name)
    if len(parts) > 1 and parts[-1].lower() in _UNITS:
        return f"{' '.join(parts[:-1])} ({parts[-1]})"
    return " ".join(parts)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _column(part: str) -> Column:
    match = _COLUMN.match(part.strip())
    return Column(match.group(1), match.group(2)) if match else Column(part.strip().strip('`"'), "VARCHAR")


def _describe(table: Table, name: str, text: str) -> None:
    for column in table.columns:
        if column.name == name:
            span = _SPAN.match(text)
            if span and not column.is_text:
                column.low, column.high = span.group(1), span.group(2)
            elif column.is_text:
                more = _MORE.search(text)
                column.more = int(more.group(1)) if more else 0
                listed = text[: more.start()] if more else text
                column.values = [value.strip() for value in listed.split(", ") if value.strip()]
