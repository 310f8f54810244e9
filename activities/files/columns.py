"""What a column of texts holds: numbers, dates or just texts, however people wrote them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from activities.files.values import literal, quoted

Scalar = Callable[[str], tuple[int, ...]]
"""Returns the row of one SELECT list over the table."""

BLANKS = ("", "-", "–", "na", "n/a", "#n/a", "null", "none", "nan", "k.a.", "?")
_MOSTLY = 0.8  # of a column's values: with fewer numbers or dates among them it is meant as text

_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_POINT = r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
_COMMA = r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$|^[+-]?\d+(,\d+)?$"
_GROUPS = r"^[+-]?\d{1,3}(,\d{3})+$"
_SIGNS = "[€$£¥%\\s\u00a0\u202f'’]"
_DAYS = ("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y")
_DAY_FIRST = ("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y")
_MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y")
_ALIKE = r"^(\d{1,4}[./ -]|[A-Za-z]+ \d)"  # as every text of these shapes begins
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")


@dataclass
class Column:
    """The SQL expression that reads a column of texts, and what a reader should know of it."""

    sql: str
    notes: list[str] = field(default_factory=list)


def typed(name: str, scalars: Scalar, *, semicolons: bool) -> Column:
    """Returns how to read a column.

    All values that are not blank must fit, else it stays text. Identifiers with leading zeros and dates that may be
    read in two ways stay text. `semicolons` separate the file's fields: then a lone comma is a decimal one.
    """
    raw = quoted(name)
    blanks = ", ".join(map(literal, BLANKS))
    value = f"(CASE WHEN lower(trim({raw})) IN ({blanks}) THEN NULL ELSE trim({raw}) END)"
    bare = f"regexp_replace({value}, {literal(_SIGNS)}, '', 'g')"
    filled, zeros, plain, point, comma, groups, signed = scalars(
        f"count({value}), "
        f"count(*) FILTER (regexp_matches({value}, '^0\\d+$')), "
        + ", ".join(
            f"count(*) FILTER (regexp_matches({bare}, '{shape}'))" for shape in (_PLAIN, _POINT, _COMMA, _GROUPS)
        )
        + f", count(*) FILTER ({bare} <> {value})"
    )
    if not filled or zeros:
        return Column(raw)
    percent = [f"{name}: the numbers are written with signs such as % or €"] if signed else []
    if plain == filled:
        (whole,) = scalars(f"count(TRY_CAST({bare} AS BIGINT)) FILTER (regexp_matches({bare}, '^[+-]?\\d{{1,18}}$'))")
        return Column(f"TRY_CAST({bare} AS {'BIGINT' if whole == filled else 'DOUBLE'})", percent)
    if comma == filled and (groups < filled or semicolons or point < filled):
        read = f"TRY_CAST(replace(replace({bare}, '.', ''), ',', '.') AS DOUBLE)"
        return Column(read, [f"{name}: decimal commas are read as numbers", *percent])
    if point == filled:
        return Column(f"TRY_CAST(replace({bare}, ',', '') AS DOUBLE)", [f"{name}: commas group thousands", *percent])
    return _dated(name, raw, value, scalars, filled, max(plain, point, comma))


def _dated(name: str, raw: str, value: str, scalars: Scalar, filled: int, numbers: int) -> Column:
    """Returns how to read a column that holds no plain numbers: as dates of one shape, else as text."""
    iso = f"regexp_matches({value}, '^\\d{{4}}-\\d\\d-\\d\\d([ T]\\d\\d:\\d\\d.*)?$')"
    times, midnights, alike = scalars(
        f"count(TRY_CAST({value} AS TIMESTAMP)) FILTER ({iso}), "
        f"count(*) FILTER (TRY_CAST({value} AS TIMESTAMP) = TRY_CAST({value} AS DATE) AND {iso}), "
        f"count(*) FILTER (regexp_matches({value}, '{_ALIKE}'))"
    )
    if times == filled:
        return Column(f"TRY_CAST({value} AS {'DATE' if midnights == filled else 'TIMESTAMP'})")
    best = times
    for time in _TIMES if alike >= _MOSTLY * filled else ():  # a look at each shape is what takes the time
        shapes = {kind: _formats(value, kinds, time) for kind, kinds in _KINDS.items()}
        counts = dict(zip(shapes, scalars(", ".join(f"count({shape})" for shape in shapes.values())), strict=True))
        best = max(best, *counts.values())
        fitting = [kind for kind, count in counts.items() if count == filled]
        if len(fitting) > 1:
            note = f"{name}: the dates may be read day first or month first, so they stay text"
            return Column(raw, [note])
        if fitting:
            notes = [] if fitting == ["days"] else [f"{name}: dates are read {fitting[0]}"]
            return Column(f"CAST({shapes[fitting[0]]} AS {'TIMESTAMP' if time else 'DATE'})", notes)
    for count, noun in ((numbers, "numbers"), (best, "dates")):
        if _MOSTLY * filled <= count < filled:
            return Column(raw, [f"{name}: {filled - count} of {filled} values are no {noun}, so it stays text"])
    return Column(raw)


_KINDS = {"days": _DAYS, "day first": _DAY_FIRST, "month first": _MONTH_FIRST}


def _formats(value: str, days: tuple[str, ...], time: str) -> str:
    return f"try_strptime({value}, [{', '.join(repr(day + time) for day in days)}])"
