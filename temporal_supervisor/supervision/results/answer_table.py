"""Tables of templates: a row for each item, from the output of its worker agent.

No model copies the values.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pydantic import JsonValue

from temporal_supervisor.supervision.base.text import clean, cut

_SHOWN_ROWS = 20  # of a table, to the author of the text beside it
_SHOWN_BYTES = 8000  # and of these as much
_FORMULA = re.compile(r"\s*(?:[=@＝＠]|[-+＋－](?![\d., ]*$))")
_SEPARATED_FORMULA = re.compile(
    r"([;\t|\r\n] {0,20})(?=[=@＝＠]|[-+＋－](?![\d., ]{0,40}(?:[;\t|\r\n]|$)))"
)
_LINK_COLUMNS = ("item", "source")

Row = Mapping[str, JsonValue]


class ItemRow(NamedTuple):
    """The `values` of an item, its subtask's id, and its `source`: a file, row or line."""

    values: Row
    item: str
    source: str


def list_of_rows(schema: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Returns the only property that is a list of objects, and the fields of these.

    The property is "" if the schema itself is such a list.
    """
    name = ""
    properties = schema.get("properties")
    if schema.get("type") == "object" and isinstance(properties, dict) and len(properties) == 1:
        ((name, schema),) = properties.items()
    items = schema.get("items")
    if schema.get("type") != "array" or not isinstance(items, dict) or not items.get("properties"):
        return None
    return name, list(items["properties"])


def table_csv(columns: Sequence[str], rows: Iterable[ItemRow]) -> bytes:
    """Returns a table as CSV, with the item and the source of each row in two extra columns."""
    item, source = (f"{name}_" if name in columns else name for name in _LINK_COLUMNS)
    lines = [{**row.values, item: row.item, source: row.source} for row in rows]
    return csv_of([*columns, item, source], lines)


def csv_of(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """Returns rows as CSV; a text that a spreadsheet would run as a formula gets an apostrophe.

    This also holds for the part after a semicolon, which separates columns in many countries.
    """
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(map(_cell, columns))
    table.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def markdown_table(rows: Sequence[Row]) -> str:
    """Returns rows as a Markdown table; empty without rows."""
    columns = list(dict.fromkeys(chain.from_iterable(rows)))
    if not columns:
        return ""
    lines = [[_markdown_cell(name) for name in columns], ["---"] * len(columns)]
    for row in rows:
        lines.append([_markdown_cell(row.get(name)) for name in columns])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _markdown_cell(value: JsonValue) -> str:
    if value is None:
        return ""

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(clean(text).split()).replace("|", "\\|")


def table_content(data: bytes) -> str:
    """Returns the size of our CSV file in words: its rows, columns and empty cells."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8", "replace")))
    empty = sum(row.count("") for row in rows)
    said = [_counted(len(rows), "row"), _counted(len(header), "column")]
    if empty:
        said.append(f"{_counted(empty, 'cell')} empty")
    return ", ".join(said)


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def emptiness(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Returns the gap of a table if at least half of its cells are empty; else ""."""
    count = len(rows) * len(columns)
    empty = 0
    for row in rows:
        empty += sum(row.get(name) in (None, "", [], {}) for name in columns)
    if not count or 2 * empty < count:
        return ""
    return f"{empty:,} of {count:,} cells are empty"


def _cell(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        text = clean(value)
        text = _SEPARATED_FORMULA.sub(r"\1'", text)
        return f"'{text}" if _FORMULA.match(text) else text
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return value


def first_rows(template: str, columns: Sequence[str], rows: Sequence[ItemRow]) -> str:
    """Returns a table's size and first rows, for the author of the surrounding text."""
    begin = table_csv(columns, rows[:_SHOWN_ROWS]).decode()
    return (
        f"A table of {len(rows)} rows, one for each item of {template}, is handed over with your "
        f"text. A program made it of what the worker agents found. Do not repeat it. Its column "
        f"item has the ids to cite. It begins:\n\n{cut(begin, _SHOWN_BYTES)}"
    )
