"""Fixed routes: plain words and globs, bounded in time, the first that fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.questions.plan_modes import fits, matching_route
from supervision.contract.team import Route

TEXTS = st.text(alphabet="ab *", max_size=30)


def fitting(pattern: str, goal: str) -> bool:
    return matching_route([Route(pattern=pattern, role="clerk")], goal) is not None


@pytest.mark.parametrize(
    ("pattern", "goal"),
    [
        ("reset my password", "How do I RESET   my\npassword?"),
        ("refund*", "Refunds of 2023"),
        ("*invoice*march*", "Where is the invoice of early March 2023?"),
        ("*pear*pear*", "Pearpear"),
        ("größe", "Welche GRÖSSE hat es?"),
    ],
)
def test_a_pattern_fits(pattern: str, goal: str) -> None:
    assert fitting(pattern, goal)


@pytest.mark.parametrize(
    ("pattern", "goal"),
    [
        ("refund", "Refunding rules"),
        ("refund*", "A refund, please"),
        ("*invoice*march*", "March: where is the invoice?"),
        ("*pear*pear*", "Some pears"),
        ("(a+)+$", "aaaaaaaa"),
        (" ", "anything"),
    ],
)
def test_a_pattern_does_not_fit(pattern: str, goal: str) -> None:
    assert not fitting(pattern, goal)


def test_the_first_route_that_fits_is_taken() -> None:
    routes = [Route(pattern="*password*", role="clerk"), Route(pattern="*", role="helper")]
    taken = [route.role for route in (matching_route(routes, goal) for goal in ("My password", "Hello")) if route]
    assert taken == ["clerk", "helper"]
    assert matching_route([], "Hello") is None


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_may_stand_where_the_star_is(before: str, between: str, after: str) -> None:
    pattern = f"{before.replace('*', '')}*{after.replace('*', '')}"
    assert fits(pattern, f"{before.replace('*', '')}{between}{after.replace('*', '')}")


def test_a_hostile_pattern_over_a_long_goal_takes_no_time() -> None:
    assert not fits("*a" * 99 + "*b", "a" * 48_000)
