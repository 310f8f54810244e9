"""What a failure of one kind becomes for the work and for the run that met it."""

import pytest

from supervision.base.errors import ACCOUNT, RETRIED, TABLE, ErrorKind, call_kind, run_kind


def test_every_kind_has_one_row() -> None:
    assert sorted(row.kind for row in TABLE) == sorted(ErrorKind)


def test_a_name_that_nobody_knows_is_unexpected() -> None:
    assert ErrorKind("Strange") is ErrorKind.UNEXPECTED
    assert ErrorKind("Timeout") is ErrorKind.TIMEOUT


@pytest.mark.parametrize("kind", sorted({*RETRIED, ErrorKind.UNEXPECTED}))
def test_what_was_retried_in_vain_is_a_model_that_is_unavailable(kind: ErrorKind) -> None:
    assert call_kind(kind) is ErrorKind.MODEL_UNAVAILABLE


@pytest.mark.parametrize("kind", [*sorted(ACCOUNT), ErrorKind.REFUSED, ErrorKind.CONTEXT_OVERFLOW])
def test_any_other_failure_of_a_call_keeps_its_name(kind: ErrorKind) -> None:
    assert call_kind(kind) is kind


def test_a_run_fails_with_a_kind_of_the_contract() -> None:
    assert run_kind(ErrorKind.TIMEOUT) is ErrorKind.DEADLINE_EXCEEDED
    assert run_kind(ErrorKind.NOT_GRANTED) is ErrorKind.INVALID_REQUEST
    assert run_kind(ErrorKind.INVALID_PLAN) is ErrorKind.INVALID_PLAN
