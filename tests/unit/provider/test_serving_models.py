"""Fallback chains: which model of one goes on, by what calls have met."""

from datetime import UTC, datetime, timedelta

from supervision.errors import ErrorKind
from supervision.provider.serving_models import ServingModels

START = datetime(2026, 1, 1, tzinfo=UTC)
CHAIN = ["large", "middle", "small"]


class _Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def test_the_first_model_that_serves_is_chosen() -> None:
    models = ServingModels(_Clock())
    assert models.choose(CHAIN) == "large"
    assert models.failed("large", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0) == "middle"
    assert models.choose(CHAIN) == "middle"
    assert models.following(CHAIN, "middle") == "small"
    assert models.following(CHAIN, "small") is None


def test_a_model_comes_back_after_its_outage_and_an_unserved_one_by_a_person() -> None:
    clock = _Clock()
    models = ServingModels(clock)
    models.failed("large", CHAIN, ErrorKind.CIRCUIT_OPEN, 60)
    models.failed("middle", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0)
    assert models.choose(CHAIN) == "small"
    clock.now += timedelta(seconds=60)
    assert models.choose(CHAIN) == "large"
    assert models.following(CHAIN, "large") == "small"
    models.bring_back()
    assert models.following(CHAIN, "large") == "middle"


def test_without_any_other_model_the_one_that_comes_back_first_is_awaited() -> None:
    models = ServingModels(_Clock())
    models.failed("large", CHAIN, ErrorKind.CIRCUIT_OPEN, 90)
    models.failed("middle", CHAIN, ErrorKind.CIRCUIT_OPEN, 60)
    assert models.failed("small", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0) == "middle"
    gone = ["first", "second"]
    models.failed("first", gone, ErrorKind.MODEL_NOT_SERVED, 0)
    assert models.failed("second", gone, ErrorKind.MODEL_NOT_SERVED, 0) == "second"
    assert models.choose(gone) == "first"


def test_failures_that_would_meet_every_model_change_nothing() -> None:
    models = ServingModels(_Clock())
    for kind in (ErrorKind.PROVIDER_BILLING, ErrorKind.TIMEOUT, ErrorKind.PROVIDER_REJECTED):
        assert models.failed("large", CHAIN, kind, 60) == "large"


def test_a_prompt_too_long_for_one_window_goes_to_the_next_model_and_leaves_none_out() -> None:
    models = ServingModels(_Clock())
    assert models.failed("large", CHAIN, ErrorKind.CONTEXT_OVERFLOW, 0) == "middle"
    assert models.failed("small", CHAIN, ErrorKind.CONTEXT_OVERFLOW, 0) == "small", "the last one's failure stands"
    assert models.choose(CHAIN) == "large"
