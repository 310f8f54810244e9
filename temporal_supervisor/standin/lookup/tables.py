"""Tables as tools print them: descriptions, results, their figures; and queries of a subtask."""

import re
from calendar import monthrange
from dataclasses import dataclass, field
from html import unescape
from itertools import chain, pairwise
from typing import NamedTuple

from temporal_supervisor.standin.lookup.word_forms import key_stems, shared_stems, stems
from temporal_supervisor.supervision.base.prompt_marks import EXAMPLE

_TABLE = re.compile(r"^\s*table\s+([^\s()]+)\s*\((?:[^()]|\([^()]*\))*\)", re.IGNORECASE)
_COLUMN = re.compile(
    r"^\s++`?+(\"[^\"]++\"|[^:`\"]++)`?+:\s++(.+)$"
)  # a quoted name stays quoted: queries need it so
_SPAN = re.compile(r"^(-?\d\S*) to (-?\d\S*)$")
_MORE = re.compile(r",?(?<!\s)\s*+(?:(?:\.\.\.|…)\s*+)?and \d++ more\s*$")
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_TIME_NAMES = {"date", "year", "month", "quarter", "week", "day", "time", "period"}
# "2004", "2004-05-02", "2004-Q1"; not "204".
_TIME_VALUE = re.compile(r"(1[5-9]|20|21)\d\d(-\d\d(-\d\d)?([T ].*)?|-?Q[1-4])?")
_NUMBER = re.compile(r"[+-]?(\d[\d,]*(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
# "12 * 3 = 36"; not "a = b".
_RESULT = re.compile(r"=\s*(-?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)\s*$", re.IGNORECASE)
_RULE = re.compile(r":?-+:?")  # below the header of a table
_BAR = re.compile(r"(?<!\\)\|")
_SERIES = 8  # so many of a result get a sentence each
_COMPUTED = 4  # so many get arithmetic


@dataclass
class Table:
    """A table as a tool described it.

    `values` are of columns with names, `spans` (from, to) of columns with figures.
    """

    name: str
    text: str
    values: dict[str, list[str]] = field(default_factory=dict)
    spans: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def time(self) -> tuple[str, str, str] | None:
        """Returns name, first and last time of the column that dates the rows; None without one."""
        for name, span in self.spans.items():
            if _names_time(name) and all(map(_TIME_VALUE.fullmatch, span)):
                return name, *span
        return None


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
        return _names_time(self.header[at]) and all(
            _TIME_VALUE.fullmatch(row[at]) for row in self.rows
        )

    def is_number(self, at: int) -> bool:
        """True if a column holds figures."""
        cells = [row[at] for row in self.rows if row[at] != "NULL"]
        return bool(cells) and all(map(_NUMBER.fullmatch, cells)) and not self.is_time(at)


def parse_tables(text: str) -> list[Table]:
    """Returns the tables that a tool's output describes.

    A line `table name (columns)`, then a line per column.
    """
    tables: list[Table] = []
    columns = ""
    for line in text.splitlines():
        match = _TABLE.match(line)
        if match:
            tables.append(Table(match[1].strip('"'), line))
            columns = match[0]
            continue
        column = _COLUMN.match(line)
        if column is None or column[1] not in columns:
            continue  # a note on the table names none
        name, listed = column[1], column[2]
        span = _SPAN.match(listed)
        if span:
            tables[-1].spans[name] = (span[1], span[2])
        else:
            tables[-1].values[name] = _listed_values(listed)
    return tables


def _listed_values(listed: str) -> list[str]:
    """Returns the values in a column's line, without quotes."""
    found = _VALUE.findall(_MORE.sub("", listed))
    return [quoted.replace("''", "'") or plain for quoted, plain in found]


def parse_grids(text: str) -> list[Grid]:
    """Returns the Markdown tables of a text that have at least one row."""
    grids: list[Grid] = []
    lines = [_cells(line) for line in text.splitlines()]
    for at, (header, rule) in enumerate(pairwise(lines)):
        if not header or not rule or not all(map(_RULE.fullmatch, rule)):
            continue
        end = at + 2
        while end < len(lines) and len(lines[end]) == len(header):
            end += 1
        if end > at + 2:
            grids.append(Grid(header, lines[at + 2 : end]))
    return grids


def _names_time(column: str) -> bool:
    return not _TIME_NAMES.isdisjoint(stems(column.replace("_", " "))[:2])


def _cells(line: str) -> list[str]:
    """Returns the cells of a line of a table; none of any other line."""
    line = line.strip()
    if not line.startswith("|"):
        return []
    cells = _BAR.split(line.strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


class Series(NamedTuple):
    """One measure of one thing: its printed values at the first and the last time.

    Both times are empty if it is undated.
    """

    name: str
    start: str
    first: str
    end: str
    last: str

    @property
    def change(self) -> list[str]:
        """Returns the change and that in percent of the first value, as expressions.

        None where nothing moves.
        """
        if self.start == self.end:
            return []
        first, last = _operand(self.first), _operand(self.last)
        moved = f"{last} - {first}"
        is_zero = re.search("[1-9]", first) is None
        return [moved] if is_zero else [moved, f"({moved}) / {first} * 100"]


def series_of(grid: Grid) -> list[Series]:
    """Returns the series of a result table in order."""
    columns = range(len(grid.header))
    time = next((at for at in columns if grid.is_time(at)), None)
    figures = [at for at in columns if at != time and grid.is_number(at)]
    measures = [at for at in figures if "id" not in stems(grid.header[at].replace("_", " "))]
    labels = [at for at in columns if at != time and at not in figures]
    points: dict[str, list[tuple[str, str]]] = {}
    for row in grid.rows:
        label = ", ".join(row[at] for at in labels)
        moment = "" if time is None else row[time]
        for at in measures:
            head = grid.header[at].replace("_", " ")
            name = ": ".join(filter(None, [label, head]))
            if row[at] != "NULL":
                points.setdefault(name, []).append((moment, row[at]))
    found: list[Series] = []
    for name, values in points.items():
        values.sort(key=lambda point: point[0])
        found.append(Series(name, *values[0], *values[-1]))
    return found


def expressions(grids: list[Grid]) -> list[str]:
    """Returns expressions to be calculated: the changes of the first series."""
    found = chain.from_iterable(map(series_of, grids))
    moving = [one.change for one in found if one.change][:_COMPUTED]
    return list(dict.fromkeys(chain.from_iterable(moving)))


def grid_sentences(grids: list[Grid], calculated: dict[str, str]) -> list[str]:
    """Returns sentences with the figures of result tables.

    `calculated` has results of a calculator by expression.
    """
    lines: dict[str, None] = {}
    for grid in grids:
        for one in series_of(grid)[:_SERIES]:
            line = _stated(one, calculated)
            lines[line[0].upper() + line[1:]] = None
    return list(lines)


def result_of(output: str) -> str:
    """Returns the rounded value in a calculator's `expression = value`; empty without one."""
    first, _, _ = output.strip().partition("\n")
    match = _RESULT.search(first)
    if not match:
        return ""
    value = float(match[1].replace(",", ""))
    return f"{value:,.2f}".removesuffix(".00") if abs(value) >= 1 else f"{value:.4g}"


def _stated(one: Series, calculated: dict[str, str]) -> str:
    """Returns a sentence with the value of a series, or with its change."""
    if one.start != one.end:
        return _moved(one, calculated)
    if one.end:
        return f"{one.name} was {one.last} ({one.end})."
    return f"{one.name} is {one.last}."


def _moved(one: Series, calculated: dict[str, str]) -> str:
    """Returns a sentence with the change of a series, computed if a calculator was asked."""
    by, *share = [result_of(calculated.get(made, "")) for made in one.change]
    change = ""
    if by:
        percent = [f" ({each} %)" for each in share if each]
        change = f", a change of {by}{''.join(percent)}"
    return f"{one.name} went from {one.first} ({one.start}) to {one.last} ({one.end}){change}."


def _operand(value: str) -> str:
    text = value.replace(",", "")
    return f"({text})" if text.startswith("-") else text


_EXAMPLE = re.compile(rf'<{EXAMPLE} question="([^"]*)">(.*?)</{EXAMPLE}>', re.DOTALL)
# "t.rider = 'Bob'", "year IN (2004, 2005)"; not "rider <> 'Bob'".
_CONDITION = re.compile(
    r"(?<!\w)((?:\w++\.)?(\w++))\s*+(?:=\s*('(?:[^']|'')*')|\bIN\s*\(([^()]*)\))", re.IGNORECASE
)
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
    """Returns the query of the example that fits a question, with its names and times.

    Each word of the question must be a word of the example, of the table's description, or of the
    inserted names. Empty without a fitting example.
    """
    wanted = [stem for stem in key_stems(question) if not stem.isdigit()]
    times = _times_in(question)
    fitting: list[tuple[int, str]] = []
    for table in tables:
        listed = table.values.items()
        names = {column: values_named_in(values, question) for column, values in listed}
        for example in examples:
            adapted = _adapted(table, example, names, times)
            if adapted is None:
                continue
            sql, used = adapted
            about = " ".join([example.question, *used])
            if wanted and len(shared_stems(wanted, f"{about} {table.text}")) == len(wanted):
                fitting.append((len(shared_stems(wanted, about)), sql))
    return max(fitting, key=lambda one: one[0], default=(0, ""))[1]


def _times_in(text: str) -> list[str]:
    """Returns the years (`YYYY`) and months (`YYYY-MM`) in a text, in order of time."""
    return sorted(set(_TIME.findall(text)))


def values_named_in(values: list[str], text: str) -> list[str]:
    """Returns the values whose whole name is in `text`."""
    left = f" {' '.join(stems(text))} "
    whole: set[str] = set()
    for value in sorted(values, key=len, reverse=True):  # a part of a longer name is not a name
        phrase = f" {' '.join(stems(value))} "
        if phrase.strip() and phrase in left and (len(value) > 3 or value in text):
            whole.add(value)
            left = left.replace(phrase, " , ")
    return [value for value in values if value in whole]


def _adapted(
    table: Table,
    example: Example,
    names: dict[str, list[str]],
    times: list[str],
) -> tuple[str, list[str]] | None:
    """Returns the example's query with other names and times in place of its own, and the names.

    None if names lack.
    """
    if not re.search(rf"(?<!\w){re.escape(table.name)}(?!\w)", example.sql):
        return None
    own = _times_in(example.question)
    given = times
    if table.time and len(times) < len(own):
        ends = [moment[:7] for moment in table.time[1:]]
        given = [*times, *ends[len(times) :]]
    lacking: list[str] = []
    used: list[str] = []

    def condition(match: re.Match[str]) -> str:
        written, column = match[1], match[2]
        found = _LITERAL.findall(match[3] or match[4] or "")
        literals = [text.replace("''", "'") for text in found]
        if column not in names or not values_named_in(literals, example.question):
            return match[0]
        if names[column]:
            used.extend(names[column])
        else:
            lacking.extend(literals)
        return _one_of(written, names[column])

    def time(match: re.Match[str]) -> str:
        if match[0] not in own or not given:
            return match[0]
        if match[0] == own[-1]:
            return _like(given[-1], match[0], last=True)
        place = min(own.index(match[0]), len(given) - 1)
        return _like(given[place], match[0])

    sql = _TIME.sub(time, _CONDITION.sub(condition, example.sql))
    return None if lacking else (sql, used)


def _like(time: str, pattern: str, last: bool = False) -> str:
    """Returns a time as a year, month or day, like the pattern: its first one, or its last."""
    month = (time + ("-12" if last else "-01"))[:7]
    day = monthrange(int(month[:4]), int(month[5:]))[1] if last else 1
    return f"{month}-{day:02}"[: len(pattern)]


def _one_of(column: str, values: list[str]) -> str:
    quoted = ("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({', '.join(quoted)})"
