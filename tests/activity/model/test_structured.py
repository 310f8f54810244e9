"""Finding JSON in what a model wrote."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.model.structured import first_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Here you are:\n{"a": {"b": "}"}} Anything else?', {"a": {"b": "}"}}),
        ('{"a": 1} {"a": 2}', {"a": 1}),
        ('as {said} before [1]: {"a": 1}', {"a": 1}),
        ('[{"a": 1}]', [{"a": 1}]),
        ("as {said} in f(x) { return {x} } " * 30 + '{"a": 1}', {"a": 1}),
        ("[see 1] [1] " * 30 + '{"a": 1}', {"a": 1}),
        ('{"a" 1} ' * 19 + '{"a": 1}', {"a": 1}),
    ],
)
def test_the_first_object_is_found(text: str, value: Any) -> None:
    assert first_json(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": [{"b": 1}, {"c"', '{"a": "cut', "[" * 100_000, '{"a": "\\u00', '{"a" 1} ' * 20 + '{"a": 1}'],
)
def test_text_without_a_whole_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        first_json(text)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_characters="{[")), st.dictionaries(st.text(), JSON), st.text())
def test_any_object_is_found_between_any_words(before: str, value: dict[str, Any], after: str) -> None:
    assert first_json(before + json.dumps(value) + after) == value


@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON, min_size=1), st.data())
def test_a_cut_object_never_yields_a_part_of_itself(value: dict[str, Any], data: st.DataObject) -> None:
    whole = json.dumps(value)
    with pytest.raises(ValueError):
        first_json(whole[: data.draw(st.integers(0, len(whole) - 1))])
