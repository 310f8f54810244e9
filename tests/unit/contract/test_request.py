"""Requests: what comes in is a bounded RunRequest below the operator's ceilings, or an InvalidRequest that says why."""

import json
from contextlib import nullcontext
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.base import Undecodable
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.request import (
    ATTACHMENT_TEXT_BYTES,
    REQUEST_BYTES,
    Budget,
    RunRequest,
    parse_request,
    success_fraction,
)
from tests.unit.shapes import any_text

ROLE = {"name": "analyst", "description": "counts", "system_prompt": "Count."}
TEAM = {"name": "shop", "generalist": "analyst", "roles": [ROLE]}
WISHES = ["PT30M", 90, "x", "all", "2/3", 0.5, -1, 10**400, "1e-999999999", float("nan"), float("inf"), True, [], {}]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.sampled_from(WISHES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
teams = st.fixed_dictionaries(
    {
        "name": any_text | st.just("shop"),
        "generalist": any_text,
        "roles": st.lists(st.just(ROLE) | json_values, max_size=2),
    }
)
fields = st.sampled_from(sorted(RunRequest.model_fields)) | any_text
requests = st.fixed_dictionaries({"goal": st.just("Sum the sales") | json_values}).flatmap(
    lambda goal: st.dictionaries(fields, json_values | teams | st.just(TEAM), max_size=4).map(
        lambda rest: {**goal, **rest}
    )
)


def refusal(value: object, *surplus: object) -> str:
    with pytest.raises(SupervisionError) as caught:
        parse_request(value, surplus)
    assert caught.value.kind == "InvalidRequest"
    return caught.value.message


@given(requests | json_values)
def test_any_json_is_a_request_or_an_invalid_one(value: object) -> None:
    try:
        request = parse_request(value)
    except SupervisionError:
        message = refusal(value)
        assert message.strip()
        assert "\n" not in message
        assert size(message) <= limits.ERROR_BYTES
        return
    assert size(request.model_dump_json()) <= REQUEST_BYTES
    assert RunRequest.model_validate_json(request.model_dump_json()) == request


def test_a_plan_of_as_many_subtasks_as_a_run_may_have_fits_into_a_request() -> None:
    words = "Find out how many pears tree {} bears, by the book of the garden, and when they are ripe."
    subtasks = [{"id": f"t{n}", "role": "finder", "description": words.format(n)} for n in range(limits.MAX_SUBTASKS)]
    request = parse_request({"goal": "g", "max_subtasks": limits.MAX_SUBTASKS, "plan": {"subtasks": subtasks}})
    sent = request.model_dump_json()
    assert size(sent) <= REQUEST_BYTES
    assert RunRequest.model_validate_json(sent) == request


def test_defaults_are_those_of_the_contract() -> None:
    request = parse_request({"goal": "Sum the sales"})
    assert json.loads(request.model_dump_json()) == {
        "goal": "Sum the sales",
        "team": None,
        "strategy": "auto",
        "approve_plan": False,
        "approval_timeout": "P7D",
        "on_approval_timeout": "reject",
        "max_subtasks": 12,
        "max_parallel": 8,
        "max_turns": 10,
        "max_depth": 2,
        "max_reviews": 3,
        "max_replans": 2,
        "plan": None,
        "subtask_timeout": None,
        "max_tokens": None,
        "on_subtask_failure": "gap",
        "on_no_answer": "fail",
        "deadline": "PT30M",
        "budget": {"tokens": 1_000_000, "usd": 5.0},
        "success": "any",
        "incremental_synthesis": 0,
        "models": {"supervisor": None, "workers": None},
        "effort": None,
        "answer_schema": None,
        "attachments": [],
        "reuse_from": [],
        "metadata": {},
    }


DEEP: dict[str, Any] = {}
for _ in range(600):
    DEEP = {"properties": DEEP}


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((None,), "no input"),
        (([],), "not of type list"),
        (("Sum the sales",), "not of type str"),
        (({"goal": "x"}, 1, 2), "3 were given"),
        (({},), "goal: Field required"),
        (({"goal": "x", "answer_schema": DEEP},), "nested too deeply: at most 100 levels"),
        ((Undecodable("no JSON"),), "can't be decoded (no JSON)"),
    ],
)
def test_an_input_that_is_no_request_says_why(inputs: tuple[object, ...], message: str) -> None:
    assert message in refusal(*inputs)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("goal", " \n", "goal: the goal is empty"),
        ("goal", "a \ud83e", "request: it contains an unpaired surrogate"),
        ("team", [TEAM], "team: must be a name or a team object"),
        ("team", {"name": "shop"}, "team.roles: Field required; team.generalist: Field required"),
        ("team", {**TEAM, "roles": [{**ROLE, "name": "A"}]}, "team.roles.A.name: must be 1 to 48 lower-case"),
        ("deadline", "30x", 'deadline: must be a duration such as "30m" or "PT30M", or a number of seconds'),
        ("approval_timeout", "P31D", "approval_timeout: must be from 1 second to 30 days"),
        ("success", "most", 'success: must be "any", "all", or a fraction'),
        ("budget", {"usd": float("inf")}, "budget.usd: Input should be a finite number"),
        ("metadata", {"owner": 7}, "metadata.owner: Input should be a valid string"),
        ("metadata", {"owner": "x" * 201}, "metadata.owner: String should have at most 200 characters"),
        ("metadata", {str(n): "" for n in range(17)}, "metadata: Dictionary should have at most 16 items"),
        ("max_subtasks", 1001, "max_subtasks: Input should be less than or equal to 1000"),
        ("max_subtasks", 0, "max_subtasks: Input should be greater than or equal to 1"),
        ("max_parallel", 201, "max_parallel: Input should be less than or equal to 200"),
        ("max_depth", 0, "max_depth: Input should be greater than or equal to 1"),
        ("max_reviews", -1, "max_reviews: Input should be greater than or equal to 0"),
        ("effort", "huge", "effort: Input should be 'low', 'medium' or 'high'"),
        ("budget", {"usd": -1}, "budget.usd: Input should be greater than 0"),
        ("models", {"workers": []}, "models.workers: an empty list names no model"),
        ("team", {**TEAM, "roles": [{**ROLE, "name": "a" * 300}]}, "team.roles.0.name: must be 1 to 48"),
        ("team", {**TEAM, "roles": [{**ROLE, "name": {"a": 1}}]}, "team.roles.0.name: Input should be"),
        ("attachments", [{"name": "a"}], "attachments.a: attachment 'a' needs exactly one of text and ref"),
        ("attachments", [{"name": "a", "text": ""}] * 2, "request: attachment names must differ"),
        ("budget", {"tokens": 10**15 + 1}, "budget.tokens: Input should be less than or equal to"),
        ("budget", {"usd": 10**400}, "budget.usd: Input should be"),
        ("budget", 3, "budget: must be an object"),
        ("approve_plan", "perhaps", "approve_plan: must be true or false"),
        ("budget", {"zzzzzz": 5}, "budget.zzzzzz: unknown field"),
        ("max_reviewz", 1, "max_reviewz: unknown field, did you mean 'max_reviews'?"),
        ("budget", {"token": 5}, "budget.token: unknown field, did you mean 'tokens'?"),
        (
            "team",
            {**TEAM, "roles": [{**ROLE, "effort": {"frist": "low"}, "promptt": ""}]},
            "team.roles.analyst.effort.frist: unknown field, did you mean 'first'?; "
            "team.roles.analyst.promptt: unknown field",
        ),
    ],
)
def test_a_bad_or_unknown_field_is_told_what_is_wrong(field: str, value: object, complaint: str) -> None:
    assert refusal({"goal": "Sum the sales", field: value}).startswith(complaint)


@pytest.mark.parametrize(
    ("value", "share"),
    [
        *(("any", None), ("all", 1), (0.1, Fraction(1, 10)), ("0.1", Fraction(1, 10)), (1, 1), ("1", 1)),
        *((value, Fraction(repr(value))) for value in (2 / 3, 1e-7)),
    ],
)
def test_success_is_a_word_or_a_share(value: Any, share: Fraction | None) -> None:
    assert success_fraction(value) == share


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "value",
    [
        *("", "none", "0", "0/5", "1/0", "-1/2", "3/2", "1e-999999999", "9" * 5000),
        *(0, 10**400, float("inf"), -0.5, 1.01, True, None, [], float("nan")),
    ],
)
def test_any_other_share_is_refused_at_once(value: object) -> None:
    with pytest.raises(ValueError, match="fraction above 0"):
        success_fraction(value)


def test_times_are_taken_up_to_their_bounds() -> None:
    for value in (timedelta(seconds=1), limits.MAX_DEADLINE):
        assert parse_request({"goal": "g", "deadline": value}).deadline == value
    for value in (timedelta(seconds=0.9), limits.MAX_DEADLINE + timedelta(seconds=0.1)):
        assert refusal({"goal": "g", "deadline": value}) == "deadline: must be from 1 second to 30 days"


def test_texts_and_requests_are_taken_up_to_their_sizes() -> None:
    texts = [{"name": f"a{number}", "text": "x" * ATTACHMENT_TEXT_BYTES} for number in range(12)]
    room = REQUEST_BYTES - size(parse_request({"goal": "g", "attachments": texts}).model_dump_json())
    assert 0 < room < limits.GOAL_BYTES
    parse_request({"goal": "g" * limits.GOAL_BYTES})
    parse_request({"goal": "g" * (room + 1), "attachments": texts})
    assert "keep a large team in a team file" in refusal({"goal": "g" * (room + 2), "attachments": texts})
    assert "goal has" in refusal({"goal": "g" * (limits.GOAL_BYTES + 1)})
    longer = {"name": "a", "text": "x" * (ATTACHMENT_TEXT_BYTES + 1)}
    assert "bytes of text" in refusal({"goal": "g", "attachments": [longer]})


def test_a_team_is_known_by_its_name_and_stored_content_is_left_out() -> None:
    request = parse_request({"goal": "g" * 40_000, "team": TEAM, "attachments": [{"name": "a", "text": "b"}]})
    assert (request.team_name, parse_request({"goal": "g", "team": "lab"}).team_name) == ("shop", "lab")
    shown = request.without_content()
    assert (size(shown.goal), shown.team, shown.attachments) == (limits.SUMMARY_BYTES, "shop", [])


def test_complaints_beyond_the_first_are_counted() -> None:
    unknown = {f"field{number}": 1 for number in range(limits.FIELD_COMPLAINTS)}
    assert "more" not in refusal({"goal": "g", **unknown})
    assert refusal({"goal": "g", **unknown, "another": 1}).endswith("and 1 more")


def test_a_plan_of_ones_own_has_only_the_fields_of_a_plan() -> None:
    subtask = {"id": "t1", "description": "Sum the sales"}
    assert parse_request({"goal": "g", "plan": {"subtasks": [subtask]}}).plan is not None
    plan = {"subtasks": [{**subtask, "depend_on": []}], "new_roles": [{"name": "a", "zzz": 1}]}
    message = refusal({"goal": "g", "plan": plan})
    assert "plan.subtasks.0.depend_on: unknown field, did you mean 'depends_on'?" in message
    assert "plan.new_roles.a.zzz: unknown field" in message


# --- the operator's ceilings -------------------------------------------------------------------------


LOW = Ceilings(tokens=1000, usd=0.5, max_parallel=2)


def ask(**fields: Any) -> RunRequest:
    return RunRequest(goal="count the pears", **fields)


def test_a_request_with_its_limits_at_their_defaults_or_without_any_is_lowered_and_says_so() -> None:
    assert LOW.check(ask()) == [
        "budget.tokens is 1000: SUPERVISOR_MAX_BUDGET_TOKENS is the operator's ceiling",
        "budget.usd is 0.5: SUPERVISOR_MAX_BUDGET_USD is the operator's ceiling",
        "max_parallel is 2: SUPERVISOR_MAX_PARALLEL is the operator's ceiling",
    ]
    lowered = LOW.lowered(ask())
    assert (lowered.budget.tokens, lowered.budget.usd, lowered.max_parallel) == (1000, 0.5, 2)
    assert lowered.model_copy(update={"budget": Budget(), "max_parallel": 8}) == ask()
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
