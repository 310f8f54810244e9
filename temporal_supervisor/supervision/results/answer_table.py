"""Tables of templates: a row for each item, which is the output of its worker agent.

No model transcribes it.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

from temporal_supervisor.supervision.base.text import clean, cut

_SHOWN_ROWS = 20  # of a table, to the author of the text beside it
_SHOWN_BYTES = 8000  # and of these as much
_FORMULA = re.compile(r"\s*(?:[=@＝＠]|[-+＋－](?![\d., ]*$))")
_SEPARATED_FORMULA = re.compile(r"([;\t|\r\n] {0,20})(?=[=@＝＠]|[-+＋－](?![\d., ]{0,40}(?:[;\t|\r\n]|$)))")
_LINK_COLUMNS = ("item", "source")

Row = Mapping[str, JsonValue]


class ItemRow(NamedTuple):
    """The `values` of an item, its subtask's id, and the `source`: the file, the row or the line that it is."""

    values: Row
    item: str
    source: str


def list_of_rows(schema: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Returns the one property of a `schema` that is a list of objects ("" if all of it is), and their fields."""
    name, properties = "", schema.get("properties")
    if schema.get("type") == "object" and isinstance(properties, dict) and len(properties) == 1:
        ((name, schema),) = properties.items()
    items = schema.get("items")
    if schema.get("type") != "array" or not isinstance(items, dict) or not items.get("properties"):
        return None
    return name, list(items["properties"])


def table_csv(columns: Sequence[str], rows: Iterable[ItemRow]) -> bytes:
    """Returns a table as CSV, with the item and the source of each row in two columns more."""
    links = [f"{name}_" if name in columns else name for name in _LINK_COLUMNS]
    return csv_of(
        [*columns, *links], ({**row.values, **dict(zip(links, (row.item, row.source), strict=True))} for row in rows)
    )


def csv_of(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """Returns rows as CSV.

    A text that a spreadsheet would run as a formula begins with an apostrophe. So does its part
    behind what is the separator of lists in many countries: there a spreadsheet opens the file so.
    """
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(map(_cell, columns))
    table.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def markdown_table(rows: Sequence[Row]) -> str:
    """Returns rows as a Markdown table; empty without any."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if not columns:
        return ""
    lines = [[_markdown_cell(row.get(name)) for name in columns] for row in rows]
    head = [_markdown_cell(name) for name in columns]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(columns), *lines])


def _markdown_cell(value: JsonValue) -> str:
    if value is None:
        return ""

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(clean(text).split()).replace("|", "\\|")


def table_content(data: bytes) -> str:
    """Returns the size of a CSV file of ours in words: its rows, columns and empty cells."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8", "replace")))
    empty = sum(not cell for row in rows for cell in row)
    counts = {"row": len(rows), "column": len(header), "cell": empty}
    said = [f"{number:,} {name}{'' if number == 1 else 's'}" for name, number in counts.items()]
    return ", ".join([*said[:2], *([f"{said[2]} empty"] if empty else [])])


def emptiness(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Returns the gap of a table of which half of the cells or more are empty; else nothing."""
    cells = [row.get(name) for row in rows for name in columns]
    empty = sum(value is None or value in ("", [], {}) for value in cells)
    return f"{empty:,} of {len(cells):,} cells are empty" if cells and 2 * empty >= len(cells) else ""


def _cell(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        text = clean(value)
        text = _SEPARATED_FORMULA.sub(r"\1'", text)
        return f"'{text}" if _FORMULA.match(text) else text
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


def first_rows(template: str, columns: Sequence[str], rows: Sequence[ItemRow]) -> str:
    """Returns a table's size and first rows, for the author of the text beside it."""
    return (
        f"A table of {len(rows)} rows, one for each item of {template}, is handed over with your text. A program made "
        f"it of what the worker agents found. Do not repeat it. Its column item has the ids to cite. It begins:\n\n"
        f"{cut(table_csv(columns, rows[:_SHOWN_ROWS]).decode(), _SHOWN_BYTES)}"
    )
