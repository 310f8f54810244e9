"""Forms shown filled in: with placeholders that nobody takes for data."""

from typing import Any

import pytest

from temporal_supervisor.supervision.replies.filled_form import filled_form, is_placeholder
from temporal_supervisor.supervision.replies.loose_form import says_nothing

PLAN = {
    "$defs": {
        "Item": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "t and a number"},
                "role": {"enum": ["analyst", "reader"], "type": "string"},
                "depends_on": {"type": "array", "items": {"type": "string"}, "description": "ids"},
            },
        }
    },
    "type": "object",
    "properties": {"finished": {"type": "boolean"}, "subtasks": {"type": "array", "items": {"$ref": "#/$defs/Item"}}},
}


def test_a_form_is_shown_as_the_object_that_is_asked_for() -> None:
    assert filled_form(PLAN) == (
        '{"finished": <true or false>, "subtasks": [{"id": "<t and a number>", "role": "analyst or reader", '
        '"depends_on": ["<ids>"]}]}'
    )


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ({"type": "number", "description": "From 0 to 1."}, "<From 0 to 1>"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "why"}, '"<why (or null)>"'),
        ({"const": "table"}, '"table"'),
        ({"type": "string", "description": "<b>bold</b> of\nlines"}, '"<(b)bold(/b) of lines>"'),
        ({"type": "array"}, "[]"),
    ],
)
def test_each_kind_of_field_has_its_placeholder(field: dict[str, Any], shown: str) -> None:
    assert filled_form({"type": "object", "properties": {"x": field}}) == f'{{"x": {shown}}}'


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"$ref": "#/$defs/None"}}},
        {"type": "object", "properties": {"x": {"type": ["string", "number"]}}},
        {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
        {"type": "object", "properties": {"x": {}}},
        {"type": "object", "properties": {"x": {"anyOf": [{"type": "null"}]}}},
    ],
)
def test_a_schema_that_cannot_be_shown_has_no_form(schema: dict[str, Any]) -> None:
    assert filled_form(schema) is None


def test_a_placeholder_that_was_copied_says_nothing() -> None:
    assert is_placeholder(" <the answer, with its unit>\n")
    assert says_nothing("<ids>")
    assert not says_nothing("<b>12</b> pears")
    assert not says_nothing("5 < 6")
