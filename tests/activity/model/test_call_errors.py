"""What is read of an answer without a connection: errors and wishes to wait, and JSON in a text."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.model.call_errors import classify, retry_after_seconds
from activities.model.request_body import first_json
from supervision.base import limits

LONGEST = limits.RETRY_AFTER_MAX.total_seconds()


class APIStatusError(Exception):
    """An error answer with the public fields of the SDK's."""

    def __init__(self, status: int, headers: dict[str, str] | None = None, **fields: Any) -> None:
        super().__init__("the whole body, prompt included")
        self.status_code = status
        self.response = SimpleNamespace(headers=headers or {})
        self.type: object = None
        self.error_code: object = None
        self.api_message: object = None
        self.body: object = None
        self.request_id: str | None = None
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "1e9"}, LONGEST),
        ({"retry-after": "-60"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sat, 01 Jan 2050 00:00:00 -0000"}, None),
    ],
)
def test_a_wish_to_wait_is_read_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@given(st.text())
def test_no_header_can_break_the_reading_or_ask_for_too_long(seconds: str) -> None:
    wish = retry_after_seconds({"retry-after": seconds})
    assert wish is None or 0 < wish <= LONGEST


@given(
    st.integers(100, 599),
    st.none() | st.text() | st.integers(),
    st.none() | st.text() | st.integers(),
    st.none() | st.text() | st.integers(),
    st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner)),
)
def test_any_error_answer_is_classified(status: int, type_: Any, code: Any, message: Any, body: Any) -> None:
    error = APIStatusError(status, type=type_, error_code=code, api_message=message, body=body)
    judged = classify(error, model="m", endpoint="host:1")
    assert judged.message.splitlines() == [judged.message]
    assert len(judged.message.encode()) <= limits.ERROR_BYTES


def test_an_error_that_nobody_knows_shows_its_class_but_not_its_text() -> None:
    judged = classify(KeyError("prompt text"), endpoint="host:1")
    assert (judged.kind, judged.retryable) == ("BadResponse", True)
    assert "KeyError" in judged.message
    assert "prompt text" not in judged.message


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
        '{"a": "1\n2", "b": [{"c": 1}',
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


@given(st.dictionaries(st.text(), JSON, min_size=1), st.data())
def test_a_cut_object_never_yields_a_part_of_itself(value: dict[str, Any], data: st.DataObject) -> None:
    whole = json.dumps(value)
    with pytest.raises(ValueError):
        first_json(whole[: data.draw(st.integers(0, len(whole) - 1))])
