"""Hints on text columns that a query compared or calculated with as numbers.

Example: `avg("No. of cases")` over texts such as `630308[495000-801000]`, from which the numbers
can be extracted.
"""

import re
from collections.abc import Sequence

from activities.files.file_reports import contents
from activities.tools.sql.query_hints import columns_of
from activities.tools.sql.table_words import CATALOGUE_VALUES
from temporal_supervisor.supervision.base.json_object import JsonObject

_CONVERTED = re.compile(r"Could not convert string .{0,200}? from source column ([^\n]{1,200})")
_TAKEN_FOR_NUMBERS = re.compile(
    r"No function matches .{0,200}?VARCHAR|Cannot compare values of type VARCHAR", re.DOTALL
)
_NUMBER_FIRST = re.compile(r"-?\d")
_MOSTLY = 0.8  # of the values: with fewer numbers among them the others would be lost unseen
_COLUMNS = 2  # told of one query


def on_text_columns(problem: str, sql: str, tables: Sequence[JsonObject]) -> str:
    """Returns lines on the text columns that made a query fail; empty for any other problem."""
    columns = columns_of(tables)
    converted = _CONVERTED.search(problem)
    if converted is not None:
        meant = [column for column in columns if column["name"] == converted[1]]
    elif _TAKEN_FOR_NUMBERS.search(problem):
        named = [column for column in columns if _is_named(column, sql)]
        meant = [column for column in named if _begins_with_numbers(column)]
    else:
        return ""
    return "".join(_column_hint(column) for column in meant[:_COLUMNS] if contents(column))


def _column_hint(column: JsonObject) -> str:
    name = column["sql"]
    known = contents(column, CATALOGUE_VALUES)
    line = f"Column {name} has texts: {known}. Compare it with a text in quotes."
    if _begins_with_numbers(column):
        number = rf"TRY_CAST(regexp_extract({name}, '^-?[0-9]+(\.[0-9]+)?') AS DOUBLE)"
        line += f" To calculate with the numbers that they begin with, write {number} in its place."
    return f"{line}\n"


def _is_named(column: JsonObject, sql: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column['name'])}(?!\w)", sql, re.IGNORECASE) is not None


def _begins_with_numbers(column: JsonObject) -> bool:
    values = column.get("values", [])
    with_number = sum(_NUMBER_FIRST.match(value) is not None for value in values)
    return bool(values) and with_number >= _MOSTLY * len(values)
