"""Failures carry to the server words alone, unexpected ones where they come from, too; no input raises an error."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from temporal_supervisor.runtime.payloads import data_converter
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.base import Undecodable


def raised(error: Exception) -> Exception:
    """The error as code raises it that met another one: with a stack trace and a cause."""
    try:
        try:
            raise KeyError("what was met")
        except KeyError as met:
            raise error from met
    except Exception as made:
        return made


def sent(error: Exception) -> Failure:
    failure = Failure()
    data_converter.failure_converter.to_failure(error, data_converter.payload_converter, failure)
    return failure


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - {ErrorKind.UNEXPECTED}))
def test_a_failure_of_an_anticipated_kind_is_its_words_alone(kind: ErrorKind) -> None:
    error = ApplicationError(
        "in words", {"spent": 7}, type=kind, non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )
    failure = sent(raised(error))
    assert (failure.stack_trace, failure.HasField("cause")) == ("", False)
    back = data_converter.failure_converter.from_failure(failure, data_converter.payload_converter)
    assert isinstance(back, ApplicationError)
    assert (back.message, back.type, back.details[0]) == ("in words", kind, {"spent": 7})
    assert (back.non_retryable, back.category) == (True, ApplicationErrorCategory.BENIGN)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        ApplicationError("odd", type="NoKindOfOurs"),
        ApplicationError("odd", type=ErrorKind.UNEXPECTED),
    ],
    ids=["plain", "another type", "unexpected"],
)
def test_an_unexpected_one_keeps_where_it_comes_from(error: Exception) -> None:
    failure = sent(raised(error))
    assert "test_payloads.py" in failure.stack_trace
    assert failure.message == "odd"
    assert failure.cause.message == "'what was met'"
    assert "test_payloads.py" in failure.cause.stack_trace


@pytest.mark.parametrize("data", [b"", b"\xff", b"a" * 100_000])
def test_an_input_that_claims_to_be_unreadable_is_read_without_an_error(data: bytes) -> None:
    sent = Payload(metadata={"encoding": b"binary/unreadable"}, data=data)
    (read,) = data_converter.payload_converter.from_payloads([sent])
    assert isinstance(read, Undecodable)
    assert len(read.reason) <= limits.SENTENCE_BYTES
