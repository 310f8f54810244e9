"""The user's schema: what is refused, what is sent, and what is bounded in time."""

import socket
from typing import Any

import anthropic
import jsonschema
import pytest
import referencing.exceptions
from hypothesis import given
from hypothesis import strategies as st

from activities.replies import schema_rules
from activities.replies.answer_schema import check_schema, problems, sendable, value_of
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "nonsense"}, "it is not a JSON schema (draft 2020-12): at type: 'nonsense' is not valid"),
        ({"$ref": "https://example.com/s.json"}, "it refers to 'https://example.com/s.json': only references inside"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "it refers to '#/$defs/b', which it does not hold"),
        ({"description": "x" * limits.ANSWER_SCHEMA_BYTES}, "it has 16403 bytes, at most 16384 are allowed"),
    ],
)
async def test_a_schema_that_can_not_be_kept_is_refused(schema: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SupervisionError) as caught:
        await check_schema(schema, "run")
    assert caught.value.kind == "InvalidRequest"
    assert caught.value.message.startswith(f"answer_schema: {complaint}")


@pytest.mark.parametrize("schema", [{}, {"enum": [{"$ref": "https://example.com"}]}])
async def test_other_schemas_are_accepted(schema: dict[str, Any]) -> None:
    await check_schema(schema, "run")


@pytest.mark.parametrize(
    ("kind", "written", "read"), [("object", '{"a": 7}', {"a": 7}), ("array", "7, 8", "7, 8"), ("string", "[7]", "[7]")]
)
async def test_json_that_came_as_a_text_is_what_it_means(kind: str, written: str, read: Any) -> None:
    assert await value_of({"type": kind, "items": {"type": "integer"}, "properties": {"a": {}}}, written, "run") == read


_NULLABLE = {"anyOf": [{"type": "number"}, {"type": "null"}]}
_SCALE = {"type": "string", "enum": ["", "percent"]}


@pytest.mark.parametrize(
    ("field", "written", "read"),
    [
        (_NULLABLE, "363", 363),
        (_NULLABLE, "-3.50", -3.5),
        (_NULLABLE, "1,234", "1,234"),
        (_NULLABLE, "007", "007"),
        ({"type": ["number", "string"]}, "363", "363"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "363", "363"),
        ({"type": "string"}, "363", "363"),
        (True, "363", "363"),
        (_SCALE, "percent", "percent"),
        (_SCALE, "people", "people"),
    ],
)
async def test_a_number_that_came_as_a_text_is_one_where_no_text_is_allowed(
    field: Any, written: str, read: Any
) -> None:
    schema = {"type": "object", "properties": {"a": field}}
    assert await value_of(schema, {"a": written}, "run") == {"a": read}


async def test_the_second_time_a_text_that_is_no_choice_is_the_empty_one() -> None:
    schema = {"type": "object", "properties": {"a": _SCALE, "b": {"enum": ["x", "y"]}}}
    answered = {"a": "people", "b": "z"}
    assert await value_of(schema, answered, "run", repeated=True) == {"a": "", "b": "z"}
    assert await value_of(schema, {"a": None}, "run", repeated=True) == {"a": ""}
    assert await value_of(schema, {"a": "percent"}, "run", repeated=True) == {"a": "percent"}


def test_no_reference_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object) -> None:
        raise AssertionError("a look at the network")

    monkeypatch.setattr(socket.socket, "connect", never)
    monkeypatch.setattr(socket, "getaddrinfo", never)
    registered = {"$id": "http://example.com/a", "properties": {"x": {"$id": "c", "$ref": "http://example.com/b"}}}
    assert schema_rules.complaint(registered)
    with pytest.raises(referencing.exceptions.Unresolvable):
        schema_rules.problems({"$id": "http://example.com/a", "$ref": "b"}, {})


async def test_references_are_resolved_in_what_is_sent() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"type": ["string", "null"], "maxLength": 3}},
        "required": ["a"],
        "$defs": {"x": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}},
    }
    assert await sendable(schema, "run") == {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
            "b": {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null", "maxLength": 3}]},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


async def test_a_date_is_a_date() -> None:
    schema = {"type": "string", "format": "date"}
    assert await problems(schema, "2026-11-23", "run") == []
    for value in ("2026-11-31", "tomorrow", "2026-11-23: mail it to eve"):
        assert await problems(schema, value, "run") == [f"answer_json: {value!r} is not a 'date'"]


SCALARS: Any = st.sampled_from(
    [{"type": "integer"}, {"type": "string"}, {"type": ["null", "number"]}, {"enum": ["a", 1]}, {"type": "boolean"}, {}]
)
SCHEMAS: Any = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda one: {"type": "array", "items": one}, inner)
        | st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=2))
        | st.builds(
            lambda parts, closed: {
                "type": "object",
                "properties": parts,
                "required": sorted(parts)[:1],
                **({"additionalProperties": False} if closed else {}),
            },
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.booleans(),
        )
    ),
    max_leaves=6,
)
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_what_fits_the_schema_sent_fits_the_users(schema: dict[str, Any], value: Any) -> None:
    assert schema_rules.complaint(schema) is None
    sent = schema_rules.as_sent(schema) or {"type": "string"}
    anthropic.transform_schema(sent)  # the provider's client takes it
    if sent.get("type") != "string" and jsonschema.Draft202012Validator(sent).is_valid(value):
        assert schema_rules.problems(schema, value) == []
