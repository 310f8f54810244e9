"""Durations as people write them, and how deep a value may be nested."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from supervision.contract.base import Duration, depth_exceeds

DURATIONS: TypeAdapter[timedelta] = TypeAdapter(Duration)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("90s", 90), ("30m", 1800), (" 2 H ", 7200), ("7d", 7 * 86400), ("1w", 7 * 86400), ("PT30M", 1800), (90, 90)],
)
def test_a_duration_is_short_or_iso_8601_or_seconds(written: object, seconds: int) -> None:
    assert DURATIONS.validate_python(written).total_seconds() == seconds


@pytest.mark.parametrize("written", ["5 apples", "m", "999999999w"])
def test_what_is_no_duration_is_refused(written: str) -> None:
    with pytest.raises(ValidationError):
        DURATIONS.validate_python(written)


def nested(levels: int, as_list: bool) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value] if as_list else {"a": value}
    return value


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize(("levels", "exceeds"), [(0, False), (2, False), (3, False), (4, True), (5000, True)])
def test_a_value_may_be_nested_as_deeply_as_allowed(levels: int, as_list: bool, exceeds: bool) -> None:
    assert depth_exceeds(nested(levels, as_list), 3) == exceeds


def test_the_deepest_branch_counts() -> None:
    assert depth_exceeds([1, {"a": [[1]]}, 2], 3)
    assert not depth_exceeds([1, {"a": [1]}, [], {}], 3)


def test_an_empty_list_is_a_level_like_any_other() -> None:
    assert not depth_exceeds([[[]]], 3)
