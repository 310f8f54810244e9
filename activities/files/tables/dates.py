"""The ways to read a column of dates, each with the shape of its texts and their SQL."""

from typing import NamedTuple

from activities.files.values import literal

_DAYS = (
    "%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d %b %Y", "%d %B %Y",
    "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
_ORDERS = {
    "": _DAYS,
    "dates are read day first": ("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y"),
    "dates are read month first": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y"),
}
# Every text of these shapes: "31.12.2024", "3 May 2024", "May 3, 2024 10:30".
_DAY_FIRST = r"\d{1,4}[./ -] *(\d{1,2}|[A-Za-z]{3,9})[./ -] *\d{1,4}"
_MONTH_FIRST = r"[A-Za-z]{3,9} +\d{1,2}, *\d{4}"
_ALIKE = rf"^({_DAY_FIRST}|{_MONTH_FIRST})( +\d.*)?$"
_TIMES = {"DATE": [""], "TIMESTAMP": ["", " %H:%M", " %H:%M:%S", " %I:%M %p"]}


class DateReading(NamedTuple):
    """A way to read the texts of a column: the resulting type, their shape, the SQL, and a note."""

    kind: str
    text: str
    shape: str
    sql: str
    note: str = ""

    @property
    def value_sql(self) -> str:
        """The SQL of a value, null for other shapes: the engine even takes 'nan' for a date."""
        shaped = f"regexp_matches({self.text}, {literal(self.shape)})"
        return f"TRY_CAST(CASE WHEN {shaped} THEN {self.sql} END AS {self.kind})"


def date_readings(value: str) -> list[DateReading]:
    """Returns the ways to read the texts of an SQL expression; the first that fits all is used."""
    readings = [
        DateReading("DATE", value, r"^\d{4}-\d\d-\d\d$", value),
        DateReading("TIMESTAMP", value, r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?$", value),
    ]
    for kind, times in _TIMES.items():
        for note, days in _ORDERS.items():
            dated = f"try_strptime({value}, {[day + time for day in days for time in times]})"
            readings.append(DateReading(kind, value, _ALIKE, dated, note))
    return readings


def orders(readings: list[DateReading]) -> list[str]:
    """Returns the orders of day and month in some readings; two of them are ambiguous."""
    return sorted({reading.note for reading in readings if reading.shape == _ALIKE})
