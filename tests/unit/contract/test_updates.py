"""Inputs of updates, as a person sends them."""

import pytest

from supervision.contract.request import Budget
from supervision.contract.updates import ExtendLimits, NewBudget, Resume, read_update


def test_nothing_is_an_update_without_fields() -> None:
    assert read_update(Resume, None) == Resume()
    assert read_update(Resume, {"request_id": "a"}) == Resume(request_id="a")


def test_what_is_wrong_with_an_update_is_said() -> None:
    with pytest.raises(ValueError, match="colour: unknown field"):
        read_update(ExtendLimits, {"colour": "red"})
    with pytest.raises(ValueError, match="update: "):
        read_update(ExtendLimits, [])


def test_a_new_total_leaves_the_other_one_alone() -> None:
    assert NewBudget(tokens=7).over(Budget(tokens=5, usd=1.0)) == Budget(tokens=7, usd=1.0)
    assert NewBudget(unlimited=["usd"]).over(Budget(tokens=5, usd=1.0)) == Budget(tokens=5, usd=None)
    assert NewBudget(usd=2.0).over(Budget(tokens=5, usd=1.0)) == Budget(tokens=5, usd=2.0)
