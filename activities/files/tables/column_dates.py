"""The reading of a column of dates, in the one order that fits all its values."""

from activities.files.tables.column_reading import FIRST_ROWS, MOSTLY, ColumnReading, stays_text
from activities.files.tables.dates import DateReading, date_readings, orders
from activities.files.tables.profiles import Profile, Rows, most_frequent, sql_list, trimmed_sql

_DATE_CHARS = 40


def read_dates(rows: Rows, name: str, profile: Profile) -> ColumnReading | None:
    """Returns the reading of a column of dates; None for other columns."""
    cells = [*profile.numbers, *profile.words]
    dated = [same.times for same in cells if _may_be_date(same.shape)]
    if not profile.filled_count or sum(dated) < MOSTLY * profile.filled_count:
        return None
    text = trimmed_sql(name)
    missing = sql_list(sorted({*profile.missing, ""}))
    filled = f"count(*) FILTER (lower({text}) NOT IN ({missing}))"
    readings = date_readings(text)
    ((first, *fits),) = rows(f"SELECT {filled}, {_fits(readings)} FROM {FIRST_ROWS}")
    pairs = zip(readings, fits, strict=True)
    readings = [reading for reading, fit in pairs if fit >= MOSTLY * first]
    if not first or not readings:
        return None

    ((count, *fits),) = rows(f"SELECT {filled}, {_fits(readings)} FROM texts")
    fitting = [reading for reading, fit in zip(readings, fits, strict=True) if fit == count]
    one = most_frequent([*profile.words, *profile.numbers]).written
    if len(orders(fitting)) > 1:
        why = "the dates may be read day first or month first"
        notes = (f"{name}: {why}, so they stay text",)
        return ColumnReading(why=why, written=one, notes=notes)
    if fitting:
        return _as_dates(name, fitting[0], one)
    few = count - max(fits)
    if count - few >= MOSTLY * count:
        return stays_text(name, f"{few} of {count} values are no dates", one)
    return None


def _may_be_date(shape: str) -> bool:
    return len(shape) <= _DATE_CHARS and shape.count("9") >= 3


def _fits(readings: list[DateReading]) -> str:
    return ", ".join(f"count({reading.value_sql})" for reading in readings)


def _as_dates(name: str, reading: DateReading, written: str) -> ColumnReading:
    """Returns the reading of a column of dates; an order that is not obvious gets a note."""
    decision, why = "dates", "all values have the shape of a date"
    notes: tuple[str, ...] = ()
    if reading.note:
        decision, why = reading.note, "no other order fits all values"
        notes = (f"{name}: {reading.note}",)
    sql = reading.value_sql
    return ColumnReading(reading.kind, sql, decision, why, written=written, notes=notes)


def given_dates(rows: Rows, name: str, profile: Profile) -> ColumnReading:
    """Returns the reading that fits most values of a column that its owner describes as dates."""
    readings = date_readings(trimmed_sql(name))
    (fits,) = rows(f"SELECT {_fits(readings)} FROM texts")
    top = max(fits)
    best = [reading for reading, fit in zip(readings, fits, strict=True) if fit == top]
    if not top or len(orders(best)) > 1:
        why = "none of its values is a date"
        if top:
            why = "the dates may be read day first or month first"
        return stays_text(name, why, against=" against its description")
    one = most_frequent([*profile.words, *profile.numbers]).written
    reading = _as_dates(name, best[0], one)
    return reading._replace(why="its description says so", missed=profile.filled_count - top)
