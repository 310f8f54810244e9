"""What is read of an answer without a connection: errors and wishes to wait."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.contracts.turn_contracts import FailedCall
from activities.model.call_errors import classify, retry_after_seconds
from activities.model.journalled_call import to_application_error
from temporal_supervisor.supervision.base import limits

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
        ({"retry-after": "3600"}, LONGEST),
        ({"retry-after": "1e9"}, None),  # a time, or a slip: nobody waits for years
        ({"retry-after": "-60"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Sat, 01 Jan 2050 00:00:00 -0000"}, None),
    ],
)
def test_a_wish_to_wait_is_read_in_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize(
    ("status", "header", "retryable"),
    [
        (529, None, True),
        (529, "false", False),
        (500, " False ", False),
        (400, None, False),
        (400, "true", True),
        (409, "perhaps", True),
    ],
)
def test_a_providers_own_word_on_another_attempt_is_kept_both_ways(
    status: int, header: str | None, retryable: bool
) -> None:
    headers = {} if header is None else {"x-should-retry": header}
    judged = classify(APIStatusError(status, headers))
    assert judged.retryable == retryable
    first = to_application_error(judged, FailedCall(failures={judged.kind: 1}))
    assert first.non_retryable is not retryable
    after_three = to_application_error(judged, FailedCall(failures={judged.kind: 3}))
    assert after_three.non_retryable is (status == 400 or not retryable), "what was rejected is not sent for ever"


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
