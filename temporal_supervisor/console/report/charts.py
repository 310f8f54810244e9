"""Charts of a table's rows: lines over time, bars by category, or none if misleading.

Values are exactly those of the table. Bars begin at 0. There is no chart of incomplete rows, of
rows with a total among them, or of numbers that are only names: the table shows these better.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.IGNORECASE)
_TIME = re.compile(
    r"(?P<year>\d{4})"
    # a quarter, a half, or a month with or without its day
    r"([-/ ]?(?P<part>Q[1-4]|H[12]|\d{2})(-(?P<day>\d{2}))?)?"
    r"([T ].*)?"
)
_TIME_NAMES = re.compile(r"(?i)(year|month|quarter|date|day|week|period|jahr|monat|datum|quartal)")
_NAMES_ONLY = re.compile(r"(?i)(^|[_ ])(id|nr|no|number|code|zip|plz|lot|phone|sku|postcode)$")
_COUNTED = re.compile(r"(?i)(count|number|sum|total|average|avg|mean|min|max)\b")
_LINKS = ("item", "source", "item_", "source_")  # columns of our own beside a row's values
_TOTALS = ("total", "totals", "sum", "summe", "gesamt", "all", "overall", "grand total")
_FIRST_YEAR = 1000
_LAST_YEAR = 2200
_LEAST_ROWS = 2
_MOST_BARS = 30
_MOST_POINTS = 400
_MOST_LINES = 6
_MOST_CHARTS = 3
# The sizes of a picture, and its margins.
_WIDTH = 640
_LINE_HEIGHT = 260
_BAR_HEIGHT = 26
_LEFT = 70
_RIGHT = 20
_TOP = 14
_BOTTOM = 34
_NAMES_WIDTH = 170
_VALUE_WIDTH = 80
_TICKS = 4
_LABELS = 6  # of times below a line
_QUARTERS = {"Q1": 1.0, "Q2": 4.0, "Q3": 7.0, "Q4": 10.0, "H1": 1.0, "H2": 7.0}


@dataclass(frozen=True)
class Bar:
    """One category: its bar from `x` on, and the value in the table."""

    name: str
    value: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class ChartLine:
    """One series: a path through its points, and their labels on hover."""

    name: str
    path: str
    points: list[tuple[float, float, str]]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis with its label."""

    at: float
    words: str


@dataclass(frozen=True)
class Chart:
    """A chart of the column `title`, in units of its picture."""

    title: str
    width: float
    height: float
    zero: float
    ticks: list[Tick]
    bars: list[Bar]
    lines: list[ChartLine]
    times: list[Tick]

    @property
    def words(self) -> str:
        """A description of the picture for people who can't see it; values are in the table."""
        if self.lines:
            return f"{self.title} over time, {self.times[0].words} to {self.times[-1].words}"
        return f"{self.title} by category, {len(self.bars)} bars"


@dataclass(frozen=True)
class _Column:
    name: str
    cells: list[str]

    @property
    def is_time(self) -> bool:
        moments = [_moment(cell) for cell in self.cells]
        if any(moment is None for moment in moments):
            return False
        only_years = all(cell.isdecimal() for cell in self.cells)
        return not only_years or bool(_TIME_NAMES.search(self.name))

    @property
    def is_value(self) -> bool:
        known = [cell for cell in self.cells if cell]
        names_only = _NAMES_ONLY.search(self.name) and not _COUNTED.match(self.name)
        is_named = names_only or _TIME_NAMES.fullmatch(self.name)
        return bool(known) and not is_named and all(map(_NUMBER.fullmatch, known))

    @property
    def is_distinct(self) -> bool:
        return len(set(self.cells)) == len(self.cells) and all(self.cells)


def charts_of(columns: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> list[Chart]:
    """Returns the charts of a table; none if `rows` are not all of its `total` rows."""
    is_whole = len(rows) == total and all(len(row) == len(columns) for row in rows)
    if not is_whole or not _LEAST_ROWS <= len(rows) <= _MOST_POINTS:
        return []

    whole = [_Column(name, [row[at].strip() for row in rows]) for at, name in enumerate(columns)]
    known = [column for column in whole if column.name not in _LINKS]
    times = [column for column in known if column.is_time]
    values = [column for column in known if column.is_value and column not in times]
    words = [column for column in known if column not in times and column not in values]
    if len(times) == 1 and len(words) <= 1:
        return [*_over_time(times[0], values, words)][:_MOST_CHARTS]
    if not times and len(words) == 1:
        return [*_by_category(words[0], values)][:_MOST_CHARTS]
    return []


def table_in(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Returns columns and rows of an output that is one whole table; None for others.

    The output has the number of all rows, because a chart of some of them would mislead.
    """
    found = markdown_rows(text)
    said = [int(number) for number in re.findall(r"(?m)^(\d+) rows?$", text)]
    return found if found and said == [len(found[1])] else None


def markdown_rows(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Returns columns and rows of the Markdown table at an output's beginning, if any."""
    rows = []
    for line in text.strip().splitlines():
        if not (line.startswith("| ") and line.endswith(" |")):
            break
        rows.append(_cells(line))
    is_table = len(rows) > 1 and all(set(cell) <= {"-", ":"} for cell in rows[1])
    return (rows[0], rows[2:]) if is_table else None


def _cells(line: str) -> list[str]:
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace("\\|", "|") for part in parts]


def _moment(cell: str) -> float | None:
    """Returns a time as a number of years; None for other texts."""
    found = _TIME.fullmatch(cell)
    if found is None or not _FIRST_YEAR <= int(found["year"]) <= _LAST_YEAR:
        return None
    part = found["part"]
    if part is None:
        return float(found["year"])
    month = _QUARTERS[part] if part in _QUARTERS else float(part)
    if not 1 <= month <= 12:
        return None
    return int(found["year"]) + (month - 1) / 12 + (int(found["day"] or 1) - 1) / 366


def _by_category(names: _Column, values: Sequence[_Column]) -> Iterator[Chart]:
    """Yields a bar chart for each column in which every category has one value."""
    has_total = any(cell.casefold() in _TOTALS for cell in names.cells)
    if has_total or not names.is_distinct or len(names.cells) > _MOST_BARS:
        return
    for column in values:
        if all(column.cells):
            yield _bars(names, column)


def _bars(names: _Column, column: _Column) -> Chart:
    numbers = [float(cell) for cell in column.cells]
    low, high = min(0.0, *numbers), max(0.0, *numbers)
    room = _WIDTH - _NAMES_WIDTH - _VALUE_WIDTH
    scale = room / ((high - low) or 1)
    zero = _NAMES_WIDTH - low * scale
    rows = zip(names.cells, column.cells, numbers, strict=True)
    bars = [
        Bar(
            name=name,
            value=cell,
            x=zero + min(0.0, number) * scale,
            y=_TOP + at * _BAR_HEIGHT,
            width=abs(number) * scale,
        )
        for at, (name, cell, number) in enumerate(rows)
    ]
    height = 2 * _TOP + len(bars) * _BAR_HEIGHT
    return Chart(column.name, _WIDTH, height, zero, [], bars, [], [])


def _over_time(
    time: _Column,
    values: Sequence[_Column],
    words: Sequence[_Column],
) -> Iterator[Chart]:
    """Yields a line chart for each column of values, with a line for each category."""
    names = words[0].cells if words else [""] * len(time.cells)
    groups = list(dict.fromkeys(names))
    places = set(zip(names, time.cells, strict=True))
    has_total = any(group.casefold() in _TOTALS for group in groups)
    is_clear = len(places) == len(time.cells) and len(groups) <= _MOST_LINES
    if has_total or not is_clear or len(set(time.cells)) < _LEAST_ROWS:
        return
    for column in values:
        yield _lines(time, column, names, groups)


def _lines(time: _Column, column: _Column, names: Sequence[str], groups: Sequence[str]) -> Chart:
    """Returns a line chart of a column, with a line for each of the `groups`."""
    moments = [_moment(cell) or 0.0 for cell in time.cells]
    known = [float(cell) for cell in column.cells if cell]
    ticks = _nice(min(known), max(known))
    low, high = ticks[0], ticks[-1]
    first, last = min(moments), max(moments)
    across = (_WIDTH - _LEFT - _RIGHT) / ((last - first) or 1)
    up = (_LINE_HEIGHT - _TOP - _BOTTOM) / ((high - low) or 1)

    def place(moment: float, cell: str) -> tuple[float, float]:
        x = _LEFT + (moment - first) * across
        y = _LINE_HEIGHT - _BOTTOM - (float(cell) - low) * up
        return round(x, 1), round(y, 1)

    # A point has its moment, its category, its time in words, and its cell.
    whole = zip(moments, names, time.cells, column.cells, strict=True)
    rows = sorted(whole, key=lambda row: row[0])
    lines = []
    for group in groups:
        own = [(moment, when, cell) for moment, name, when, cell in rows if name == group]
        shown = [(*place(moment, cell), f"{when}: {cell}") for moment, when, cell in own if cell]
        points = [place(moment, cell) if cell else None for moment, _, cell in own]
        lines.append(ChartLine(group, _path(points), shown))

    bottom = _LINE_HEIGHT - _BOTTOM
    marks = [Tick(bottom - (tick - low) * up, f"{tick:,.10g}") for tick in ticks]
    whens = list(dict.fromkeys((moment, when) for moment, _, when, _ in rows))
    step = max(1, math.ceil((len(whens) - 1) / (_LABELS - 1)))
    labels = [Tick(_LEFT + (moment - first) * across, when) for moment, when in whens[::step]]
    return Chart(column.name, _WIDTH, _LINE_HEIGHT, bottom, marks, [], lines, labels)


def _path(points: Sequence[tuple[float, float] | None]) -> str:
    """Returns a line through points, with gaps for missing ones."""
    parts = []
    begins = True
    for point in points:
        if point is not None:
            parts.append(f"{'M' if begins else 'L'}{point[0]} {point[1]}")
        begins = point is None
    return "".join(parts)


def _nice(low: float, high: float) -> list[float]:
    """Returns round numbers from at most `low` to at least `high`, with 0 if it is near."""
    if low > 0 and low <= (high - low):
        low = 0.0
    span = (high - low) or abs(high) or 1.0
    rough = span / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    begin, end = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(begin, max(end, begin + 1) + 1)]
