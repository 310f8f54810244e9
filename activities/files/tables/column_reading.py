"""The reading of a column: its type, the SQL of its values, and the reason for people."""

from typing import NamedTuple

MOSTLY = 0.8  # of a column's values: with fewer numbers or dates among them it is meant as text
# Rows: a column that is mostly something else in them is not counted whole, which takes time.
FIRST = 2000
FIRST_ROWS = f"(FROM texts LIMIT {FIRST})"
WRITTEN_CHARS = 60


class ColumnReading(NamedTuple):
    """The reading of a column: its type and the SQL of a value, both empty for text, with notes."""

    kind: str = ""
    sql: str = ""
    decision: str = "text"
    why: str = ""
    unit: str = ""
    written: str = ""
    notes: tuple[str, ...] = ()
    mark: str = ""
    """The decimal mark that the column's own values show."""
    missed: int = 0
    """Values that do not fit the type that a person gave."""
    has_typed: bool = False
    """True if some values are numbers of a typed source, with its mark."""


def stays_text(name: str, why: str, written: str = "", against: str = "") -> ColumnReading:
    """Returns the reading of a column that stays text, with a note on the reason."""
    note = f"{name}: {why}, so it stays text{against}"
    return ColumnReading(why=why, written=written, notes=(note,))
