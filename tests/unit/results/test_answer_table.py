"""Tables of templates: as CSV that no spreadsheet runs, and as the author of the text beside it sees them."""

from typing import Any

import pytest
from pydantic import JsonValue

from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.results.answer_table import (
    ItemRow,
    csv_of,
    emptiness,
    first_rows,
    list_of_rows,
    table_csv,
)

ROWS = {"type": "array", "items": {"type": "object", "properties": {"name": {}, "sum": {}}}}


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (ROWS, ("", ["name", "sum"])),
        ({"type": "object", "properties": {"orders": ROWS}}, ("orders", ["name", "sum"])),
        ({"type": "object", "properties": {"orders": ROWS, "total": {}}}, None),
        ({"type": "object", "properties": {"orders": {"type": "string"}}}, None),
        ({**ROWS, "type": "object"}, None),
        ({"type": "array"}, None),
        ({"type": "array", "items": {"type": "string"}}, None),
    ],
)
def test_an_answer_that_is_one_list_of_objects_is_a_table(schema: dict[str, Any], found: object) -> None:
    assert list_of_rows(schema) == found


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"), (" @sum", "' @sum"), ("+x", "'+x"), ("-2.5", "-2.5"), ("+ 3", "+ 3"), ("a=b", "a=b"),
        ("x;=1+1", "x;'=1+1"), ("x; @sum|-2+3", "x; '@sum|'-2+3"), ("x\t+y", "x\t'+y"), ("5;-2.5;x", "5;-2.5;x"),
        (1.5, "1.5"), (None, '""'), (True, "true"), ([1, "ü"], '"[1, ""ü""]"'),
    ],
)  # fmt: skip
def test_no_cell_is_a_formula(value: JsonValue, cell: str) -> None:
    assert csv_of(["a"], [{"a": value, "b": 1}]).decode() == f"a\r\n{cell}\r\n"


def test_each_row_leads_to_its_item() -> None:
    table = table_csv(["name", "item"], [ItemRow({"name": "x", "item": 7}, "t2.1", "a.pdf")])
    assert table.decode() == "name,item,item_,source\r\nx,7,t2.1,a.pdf\r\n"


def test_the_author_sees_the_first_rows() -> None:
    rows = [ItemRow({"name": f"a{number}", "sum": "ü" * 100}, f"t2.{number}", "") for number in range(30)]
    first, _, *table = first_rows("t2", ["name", "sum"], rows).splitlines()
    assert first.startswith("A table of 30 rows, one for each item of t2,")
    assert (len(table), table[0], table[1]) == (21, "name,sum,item,source", f"a0,{'ü' * 100},t2.0,")
    assert 7500 < size(first_rows("t2", ["name"], [ItemRow({"name": "x" * 9000}, "t2.1", "")])) < 8400


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"a": None, "b": ""}, {}], "4 of 4 cells are empty"),
        ([{"a": 0, "b": []}, {"a": False, "b": None}], "2 of 4 cells are empty"),
        ([{"a": 0, "b": "x"}, {"a": False, "b": None}], ""),
        ([], ""),
    ],
)
def test_a_table_that_is_half_empty_or_more_lacks_something(rows: list[dict[str, JsonValue]], said: str) -> None:
    assert emptiness(["a", "b"], rows) == said
