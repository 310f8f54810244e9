"""The kinds of errors: one row each, and the kinds that calls and runs report."""

from supervision.base.errors import RETRIED, TABLE, ErrorKind, call_kind, run_kind


def test_every_kind_has_one_row_and_unknown_names_are_unexpected() -> None:
    assert sorted(row.kind for row in TABLE) == sorted(ErrorKind)
    assert (ErrorKind("Strange"), ErrorKind("Timeout")) == (ErrorKind.UNEXPECTED, ErrorKind.TIMEOUT)


def test_errors_that_outlived_their_retries_are_one_kind_and_others_keep_their_name() -> None:
    outlived = {*RETRIED, ErrorKind.UNEXPECTED}
    assert {call_kind(kind) for kind in outlived} == {ErrorKind.MODEL_UNAVAILABLE}
    assert [call_kind(kind) for kind in ErrorKind if kind not in outlived] == [
        k for k in ErrorKind if k not in outlived
    ]


def test_a_run_fails_with_a_kind_of_the_contract() -> None:
    assert run_kind(ErrorKind.TIMEOUT) is ErrorKind.DEADLINE_EXCEEDED
    assert run_kind(ErrorKind.NOT_GRANTED) is ErrorKind.INVALID_REQUEST
    assert run_kind(ErrorKind.INVALID_PLAN) is ErrorKind.INVALID_PLAN
