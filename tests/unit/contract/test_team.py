"""Teams: what is wrong with one is said in words its author can act on."""

from typing import Any

import pytest
from pydantic import ValidationError

from supervision.contract.request import describe_errors
from supervision.contract.team import Role, RoleCard, Team, TeamCard, ToolCard, is_name, is_pool

ROLE = {"name": "analyst", "description": "counts", "system_prompt": "Count."}
NAMES = "must be 1 to 48 lower-case letters, digits, hyphens or underscores, a letter first"


def team(**changes: Any) -> dict[str, Any]:
    return {"name": "shop", "generalist": "analyst", "roles": [ROLE], **changes}


def role(name: str, *tools: str) -> dict[str, Any]:
    return {**ROLE, "name": name, "tools": list(tools)}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "My Shop"}, f"name: {NAMES}"),
        ({"roles": []}, "roles: List should have at least 1 item after validation, not 0"),
        ({"roles": [ROLE, ROLE]}, "roles: role names must differ: analyst"),
        ({"generalist": "analist"}, "generalist: 'analist' is not one of the roles: analyst; did you mean"),
        ({"tools": [{"name": "a b", "uses": "sql"}]}, "tools.0.name: must be 1 to 64 letters, digits, hyphens or "),
        ({"tools": [{"name": "q", "uses": "sql"}] * 2}, "tools: tool names must differ: q"),
        (
            {"roles": [role("analyst", "sql", "web"), role("writer", "sql", "web")]},
            "roles: roles share the tools sql, web: give each tool to one role, or set share_tools = true",
        ),
        ({"roles": [{**ROLE, "fallback": "analyst"}]}, "roles: role 'analyst' is its own fallback: name another role"),
        ({"roles": [{**ROLE, "backup": "boss"}]}, "roles: role 'analyst': backup 'boss' is not one of the roles"),
    ],
)
def test_a_bad_team_is_told_what_is_wrong(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Team.model_validate(team(**changes))
    assert describe_errors(caught.value, root="team").startswith(complaint)


def test_tools_may_be_shared_when_the_team_says_so_and_named_twice_by_one_role() -> None:
    shared = team(roles=[role("analyst", "sql"), role("writer", "sql")], share_tools=True)
    assert Team.model_validate(shared).share_tools
    assert Team.model_validate(team(roles=[role("analyst", "sql", "sql")])).role("analyst").tools == ["sql", "sql"]


def test_an_unknown_role_is_the_generalists_business() -> None:
    card = TeamCard(
        name="shop", generalist="helper", roles=[RoleCard(name="a", model="m"), RoleCard(name="helper", model="m")]
    )
    assert [card.role(name).name for name in ("a", "helper", "stranger", "")] == ["a", "helper", "helper", "helper"]


@pytest.mark.parametrize(
    ("text", "good"),
    [("a", True), ("a-b_9", True), ("a" * 48, True), ("a" * 49, False), ("", False), ("A", False), ("9a", False)]
    + [("a\n", False), ("../a", False), ("é", False)],
)
def test_names_are_plain(text: str, good: bool) -> None:
    assert is_name(text) == good


@pytest.mark.parametrize(("name", "good"), [("far", True), ("far-2", True), ("", False), ("Far", False), ("-a", False)])
def test_a_pool_is_named_by_a_few_letters(name: str, good: bool) -> None:
    assert is_pool(name) is good
    fields = {"name": "r", "description": "d", "system_prompt": "p", "pool": name}
    if good:
        assert Role.model_validate(fields).pool == name
    else:
        with pytest.raises(ValueError, match="pool"):
            Role.model_validate(fields)


def test_a_role_needs_a_prompt_unless_it_is_a_team() -> None:
    with pytest.raises(ValueError, match="needs a system_prompt"):
        Role(name="r", description="d", system_prompt=" ")
    assert Role(name="r", description="d", team="lab").team == "lab"
    assert Role(name="r", description="d", system_prompt="p").team is None


READS, WRITES = ToolCard(name="read", reads_attachments=True), ToolCard(name="write")


@pytest.mark.parametrize(
    ("card", "reads"),
    [
        (RoleCard(name="a", model="m"), False),
        (RoleCard(name="a", model="m", tools=[WRITES]), False),
        (RoleCard(name="a", model="m", tools=[WRITES, READS]), True),
        (RoleCard(name="a", model="m", team="shop"), True),
    ],
)
def test_a_role_reads_attachments_by_a_tool_or_by_its_own_team(card: RoleCard, reads: bool) -> None:
    assert card.reads_attachments == reads


def test_a_roles_models_are_its_own_and_then_those_that_take_over() -> None:
    assert RoleCard(name="a", model="m", fallback_models=["n", "o"]).models == ["m", "n", "o"]


def test_a_route_leads_to_a_role_of_the_team() -> None:
    route = {"pattern": "refund", "role": "analyst"}
    assert Team.model_validate(team(routes=[route])).routes[0].role == "analyst"
    with pytest.raises(ValidationError, match="'clerk' is not one of the roles"):
        Team.model_validate(team(routes=[{**route, "role": "clerk"}]))
