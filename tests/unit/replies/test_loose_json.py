"""JSON in the texts of models: what is read of it, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.replies.loose_json import first_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here you are:\n{"a": {"b": "}"}} Anything else?', {"a": {"b": "}"}}),
        ('as {said} before [1]: {"a": 1}', {"a": 1}),
        ('{"a": [1, 2, ], }', {"a": [1, 2]}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('{"a": "1\n2", "b": [{"c": 1}', {"a": "1\n2", "b": [{"c": 1}]}),
        ("as {said} in f(x) { return {x} } " * 30 + '{"a": 1}', {"a": 1}),
    ],
)
def test_the_first_object_is_found(text: str, value: Any) -> None:
    assert first_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": x, "b": [1]}',
        '{"a": 1, "b": 12',
        '{"a": 1, "b": ',
        '{"a": 1,',
        '{"a": [{"b": 1}, {"c"',
        '{"a": "cut',
        "[" * 100_000,
        '{"a": "\\u00',
        '{"a" 1} {"a": 1}',
        'The rows: [{"a": 1}, {"a": 2}]',
        '[ { "a": 1, }, ]',
    ],
)
def test_text_without_a_whole_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        first_json(text)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *(leaf for part in value.values() for leaf in leaves(part))]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else [value]


@given(st.dictionaries(st.text(), JSON, min_size=1), st.data())
def test_a_cut_object_is_refused_or_has_whole_values_alone(value: dict[str, Any], data: st.DataObject) -> None:
    whole = json.dumps(value)
    try:
        read = first_json(whole[: data.draw(st.integers(0, len(whole) - 1))])
    except ValueError:
        return
    assert all(leaf in leaves(value) for leaf in leaves(read))
