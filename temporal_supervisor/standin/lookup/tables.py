"""Tables as tools print them: descriptions, results and what their figures say; and the queries of a subtask."""

import re
from calendar import monthrange
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from temporal_supervisor.standin.lookup.word_forms import key_stems, shared, stems
from temporal_supervisor.supervision.base.prompt_marks import EXAMPLE

_TABLE = re.compile(r"^\s*table\s+([^\s()]+)\s*\((?:[^()]|\([^()]*\))*\)", re.IGNORECASE)
_COLUMN = re.compile(r"^\s++`?+(\"[^\"]++\"|[^:`\"]++)`?+:\s++(.+)$")  # a quoted name stays quoted: queries need it so
_SPAN = re.compile(r"^(-?\d\S*) to (-?\d\S*)$")
_MORE = re.compile(r",?(?<!\s)\s*+(?:(?:\.\.\.|…)\s*+)?and \d++ more\s*$")
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_TIME_NAMES = {"date", "year", "month", "quarter", "week", "day", "time", "period"}
_TIME_VALUE = re.compile(r"(1[5-9]|20|21)\d\d(-\d\d(-\d\d)?([T ].*)?|-?Q[1-4])?")
_NUMBER = re.compile(r"[+-]?(\d[\d,]*(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_RESULT = re.compile(r"=\s*(-?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)\s*$", re.IGNORECASE)
_SERIES = 8  # so many of a result get a sentence each
_COMPUTED = 4  # so many get arithmetic


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


class Grid(NamedTuple):
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
        cells = [row[at] for row in self.rows if row[at] != "NULL"]
        return bool(cells) and all(map(_NUMBER.fullmatch, cells)) and not self.is_time(at)


def parse_tables(text: str) -> list[Table]:
    """Returns the tables that a tool's output describes: a line `table name (columns)`, then a line per column."""
    tables: list[Table] = []
    columns = ""
    for line in text.splitlines():
        if match := _TABLE.match(line):
            tables.append(Table(match[1].strip('"'), line))
            columns = match[0]
        elif (column := _COLUMN.match(line)) and column[1] in columns:  # a note on the table names none
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


def _names_time(column: str) -> bool:
    return not _TIME_NAMES.isdisjoint(stems(column.replace("_", " "))[:2])


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


class Series(NamedTuple):
    """One measure of one thing: the values, as printed, at its first and its last time, both empty if undated."""

    name: str
    start: str
    first: str
    end: str
    last: str

    @property
    def change(self) -> list[str]:
        """Returns the change and that in percent of the first value, as expressions; none where nothing moves."""
        first, last = _operand(self.first), _operand(self.last)
        if self.start == self.end:
            return []
        moved = f"{last} - {first}"
        return [moved, f"({moved}) / {first} * 100"] if re.search("[1-9]", first) else [moved]


def series(grid: Grid) -> list[Series]:
    """Returns the series of a result table, in its order."""
    columns = range(len(grid.header))
    time = next((at for at in columns if grid.is_time(at)), None)
    figures = [at for at in columns if at != time and grid.is_number(at)]
    measures = [at for at in figures if "id" not in stems(grid.header[at].replace("_", " "))]
    labels = [at for at in columns if at != time and at not in figures]
    points: dict[str, list[tuple[str, str]]] = {}
    for row in grid.rows:
        label = ", ".join(row[at] for at in labels)
        for at in measures:
            name = ": ".join(filter(None, (label, grid.header[at].replace("_", " "))))
            if row[at] != "NULL":
                points.setdefault(name, []).append((row[time] if time is not None else "", row[at]))
    dated = {name: sorted(values, key=lambda point: point[0]) for name, values in points.items()}
    return [Series(name, *values[0], *values[-1]) for name, values in dated.items()]


def expressions(grids: list[Grid]) -> list[str]:
    """Returns the expressions worth calculating: the changes of the first series that move."""
    changes = [one.change for grid in grids for one in series(grid)]
    moving = [change for change in changes if change][:_COMPUTED]
    return list(dict.fromkeys(made for change in moving for made in change))


def statements(grids: list[Grid], calculated: dict[str, str]) -> list[str]:
    """Returns sentences with the figures of result tables and the results of a calculator by their expressions."""
    lines = [_stated(one, calculated) for grid in grids for one in series(grid)[:_SERIES]]
    return list(dict.fromkeys(line[0].upper() + line[1:] for line in lines))


def result_of(output: str) -> str:
    """Returns the value in a calculator's `expression = value`, rounded for reading; empty if there is none."""
    if not (match := _RESULT.search(output.strip().partition("\n")[0])):
        return ""
    value = float(match[1].replace(",", ""))
    return f"{value:,.2f}".removesuffix(".00") if abs(value) >= 1 else f"{value:.4g}"


def _stated(one: Series, calculated: dict[str, str]) -> str:
    if one.start == one.end:
        return f"{one.name} was {one.last} ({one.end})." if one.end else f"{one.name} is {one.last}."
    by, *share = [result_of(calculated.get(made, "")) for made in one.change]
    change = (f", a change of {by}" + "".join(f" ({each} %)" for each in share if each)) if by else ""
    return f"{one.name} went from {one.first} ({one.start}) to {one.last} ({one.end}){change}."


def _operand(value: str) -> str:
    text = value.replace(",", "")
    return f"({text})" if text.startswith("-") else text


_EXAMPLE = re.compile(rf'<{EXAMPLE} question="([^"]*)">(.*?)</{EXAMPLE}>', re.DOTALL)
_CONDITION = re.compile(r"(?<!\w)((?:\w++\.)?(\w++))\s*+(?:=\s*('(?:[^']|'')*')|\bIN\s*\(([^()]*)\))", re.IGNORECASE)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_TIME = re.compile(r"(?<![\d.])(?:1[5-9]|20|21)\d\d(?:-(?:0[1-9]|1[0-2]))?(?!\d)")


class Example(NamedTuple):
    """A question and the query that answers it, as a tool's output shows them."""

    question: str
    sql: str


def parse_examples(text: str) -> list[Example]:
    """Returns the examples in a tool's output."""
    return [Example(unescape(question), sql.strip()) for question, sql in _EXAMPLE.findall(text)]


def example_query(tables: list[Table], examples: list[Example], question: str) -> str:
    """Returns the example's query that answers a question, with its names and times; empty if none does.

    Each word of the question must be one of the example's, of the table's description, or of the names put in.
    """
    wanted = [stem for stem in key_stems(question) if not stem.isdigit()]
    times = _times_in(question)
    fitting: list[tuple[int, str]] = []
    for table in tables:
        names = {column: named(values, question) for column, values in table.values.items()}
        for example in examples:
            adapted = _adapted(table, example, names, times)
            if adapted is None:
                continue
            sql, used = adapted
            about = " ".join([example.question, *used])
            if wanted and len(shared(wanted, f"{about} {table.text}")) == len(wanted):
                fitting.append((len(shared(wanted, about)), sql))
    return max(fitting, key=lambda one: one[0], default=(0, ""))[1]


def _times_in(text: str) -> list[str]:
    """Returns the years (`YYYY`) and months (`YYYY-MM`) that `text` names, in order of time."""
    return sorted(set(_TIME.findall(text)))


def named(values: list[str], text: str) -> list[str]:
    """Returns the values that `text` names in full."""
    left = f" {' '.join(stems(text))} "
    whole = set()
    for value in sorted(values, key=len, reverse=True):  # a part of a longer name is not a name
        phrase = f" {' '.join(stems(value))} "
        if phrase.strip() and phrase in left and (len(value) > 3 or value in text):
            whole.add(value)
            left = left.replace(phrase, " , ")
    return [value for value in values if value in whole]


def _adapted(
    table: Table, example: Example, names: dict[str, list[str]], times: list[str]
) -> tuple[str, list[str]] | None:
    """Returns the example's query with other names and times in place of its own, and the names; None if names lack."""
    if not re.search(rf"(?<!\w){re.escape(table.name)}(?!\w)", example.sql):
        return None
    own, ends = _times_in(example.question), [moment[:7] for moment in table.time[1:]] if table.time else []
    given = [*times, *ends[len(times) :]] if len(times) < len(own) else times
    lacking, used = list[str](), list[str]()

    def condition(match: re.Match[str]) -> str:
        literals = [text.replace("''", "'") for text in _LITERAL.findall(match[3] or match[4] or "")]
        if match[2] not in names or not named(literals, example.question):
            return match[0]
        (used if names[match[2]] else lacking).extend(names[match[2]] or literals)
        return _one_of(match[1], names[match[2]])

    def time(match: re.Match[str]) -> str:
        if match[0] not in own or not given:
            return match[0]
        last = match[0] == own[-1]
        return _like(given[-1 if last else min(own.index(match[0]), len(given) - 1)], match[0], last)

    sql = _TIME.sub(time, _CONDITION.sub(condition, example.sql))
    return None if lacking else (sql, used)


def _like(time: str, pattern: str, last: bool = False) -> str:
    """A time as a year, month or day, like the pattern: the first one of the time, or the last."""
    month = (time + ("-12" if last else "-01"))[:7]
    day = monthrange(int(month[:4]), int(month[5:]))[1] if last else 1
    return f"{month}-{day:02}"[: len(pattern)]


def _one_of(column: str, values: list[str]) -> str:
    quoted = ("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({', '.join(quoted)})"
