"""The operator's ceilings over requests and their updates."""

from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import ValidationError

from supervision.base.errors import SupervisionError
from supervision.contract.ceilings import Ceilings
from supervision.contract.request import Budget, RunRequest
from supervision.contract.updates import ExtendLimits

LOW = Ceilings(tokens=1000, usd=0.5, max_parallel=2)


def ask(**fields: Any) -> RunRequest:
    return RunRequest(goal="count the pears", **fields)


def test_a_request_that_leaves_its_limits_at_their_defaults_is_lowered_and_says_so() -> None:
    assert LOW.check(ask()) == [
        "budget.tokens is 1000: SUPERVISOR_MAX_BUDGET_TOKENS is the operator's ceiling",
        "budget.usd is 0.5: SUPERVISOR_MAX_BUDGET_USD is the operator's ceiling",
        "max_parallel is 2: SUPERVISOR_MAX_PARALLEL is the operator's ceiling",
    ]
    lowered = LOW.lowered(ask())
    assert (lowered.budget.tokens, lowered.budget.usd, lowered.max_parallel) == (1000, 0.5, 2)
    assert lowered.model_copy(update={"budget": Budget(), "max_parallel": 8}) == ask()


def test_no_limit_becomes_the_ceiling() -> None:
    boundless = ask(budget={"tokens": None, "usd": None}, max_parallel=1)
    assert len(LOW.check(boundless)) == 2
    assert LOW.lowered(boundless).budget == Budget(tokens=1000, usd=0.5)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"budget": {"tokens": 1001, "usd": 0.1}, "max_parallel": 1}, "1001.*1000.*SUPERVISOR_MAX_BUDGET_TOKENS"),
        ({"budget": {"tokens": 10, "usd": 0.6}, "max_parallel": 1}, "0.6.*0.5.*SUPERVISOR_MAX_BUDGET_USD"),
        ({"budget": {"tokens": 10, "usd": 0.1}, "max_parallel": 3}, "3.*2.*SUPERVISOR_MAX_PARALLEL"),
    ],
)
def test_a_number_that_was_asked_for_is_refused_above_its_ceiling(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(SupervisionError, match=says) as caught:
        LOW.check(ask(**fields))
    assert caught.value.kind == "InvalidRequest"


@pytest.mark.parametrize("totals", [(1001, None), (None, 0.51)])
def test_an_update_does_not_pass_a_ceiling(totals: tuple[int | None, float | None]) -> None:
    with pytest.raises(ValueError, match="above the operator's ceiling"):
        LOW.check_totals(*totals)
    LOW.check_totals(1000, 0.5)
    Ceilings().check_totals(*totals)


def test_only_allowed_models_are_called() -> None:
    ceilings = Ceilings(models=["claude-haiku-*", "own"])
    ceilings.check_models(["claude-haiku-5-5", "own"])
    Ceilings().check_models(["anything"])
    with pytest.raises(SupervisionError, match=f"'{'o' * 97}…'.*SUPERVISOR_ALLOWED_MODELS has claude-haiku-\\*, own"):
        ceilings.check_models(["own", "o" * 200])


@pytest.mark.parametrize(
    ("rule", "sources", "allowed"),
    [
        ("off", [], False),
        ("same-team", [], True),
        ("same-team", ["a"], True),
        ("same-team", ["a", "b"], False),
        ("any", ["a", "b"], True),
    ],
)
def test_inline_teams_take_tools_as_the_operator_allows(rule: Any, sources: list[str], allowed: bool) -> None:
    with nullcontext() if allowed else pytest.raises(SupervisionError, match="SUPERVISOR_INLINE_TEAMS"):
        Ceilings(inline_teams=rule).check_inline_team(frozenset(sources))


@pytest.mark.parametrize("budget", [{"tokens": 10**15 + 1}, {"tokens": 10**400}, {"usd": 1.1e9}, {"usd": 10**400}])
def test_numbers_beyond_counting_are_refused_in_requests_and_updates(budget: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ask(budget=budget)
    with pytest.raises(ValidationError):
        ExtendLimits.model_validate({"budget": budget})
