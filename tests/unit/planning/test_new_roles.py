"""Roles that plans define, and hints for a team's author."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.contract.plan import NewRole
from supervision.contract.team import Role, Team, is_name
from supervision.planning.new_roles import new_role_problems, with_new_roles
from supervision.planning.team_hints import HINT_ROLES, HINT_TOOLS, team_hints


def team(**changes: Any) -> Team:
    roles = [Role(name="reader", description="Reads.", system_prompt="Read.", tools=["search"])]
    return Team(**{"name": "shop", "generalist": "reader", "roles": roles, "toolbox": ["search", "count"], **changes})


def new(name: str = "counter", **changes: Any) -> NewRole:
    return NewRole(**{"name": name, "description": "Counts.", "system_prompt": "Count.", "tools": ["count"], **changes})


def test_an_accepted_role_joins_the_team_with_its_prompt_and_tools() -> None:
    grown = with_new_roles(team(), [new(), new("checker", tools=[])])
    assert [role.name for role in grown.roles] == ["reader", "counter", "checker"]
    assert grown.role("counter").tools == ["count"]
    assert grown.role("counter").system_prompt == "Count."
    assert [role.name for role in team().roles] == ["reader"]


@pytest.mark.parametrize(("tools", "shared"), [(["search"], True), ([], False)])
def test_a_new_role_may_use_a_tool_of_the_toolbox_that_another_role_has(tools: list[str], shared: bool) -> None:
    roles = [new(tools=tools), new("checker", tools=[])]
    assert new_role_problems(team(), roles) == []
    assert with_new_roles(team(), roles).share_tools == shared


@pytest.mark.parametrize(
    ("role", "complaint"),
    [
        (new(tools=["shell"]), "new role 'counter' asks for the tool 'shell', which is not in the toolbox: search, co"),
        (new("reader"), "new role 'reader': the name is taken"),
        (new("Big Boss"), "new role 'Big Boss': a name is 1 to 48 lower-case letters"),
        (new(description=" "), "new role 'counter' has no description"),
        (new(system_prompt="x" * 40_001), "new role 'counter' has a system_prompt of more than 40000 characters"),
    ],
)
def test_a_role_that_may_not_join_is_told_why(role: NewRole, complaint: str) -> None:
    (found,) = new_role_problems(team(), [role])
    assert found.startswith(complaint)


def test_roles_are_taken_up_to_their_number_and_size() -> None:
    longest = {"description": "x" * limits.ROLE_DESCRIPTION_CHARS, "system_prompt": "x" * limits.ROLE_PROMPT_CHARS}
    assert new_role_problems(team(), [new(f"r{n}", **longest) for n in range(limits.NEW_ROLES)]) == []
    many = [new(f"r{n}") for n in range(limits.NEW_ROLES + 1)]
    assert new_role_problems(team(), many) == [
        f"the plan defines {len(many)} new roles, at most {limits.NEW_ROLES} are allowed"
    ]
    assert "taken" in new_role_problems(team(), [new(), new()])[0]
    roles = [Role(name=f"x{n}", description="d", system_prompt="p") for n in range(limits.TEAM_ROLES - 1)]
    full = team(generalist="x0", roles=roles)
    assert new_role_problems(full, [new()]) == []
    assert len(new_role_problems(full, [new(), new("another")])) == 1


NAMES = st.sampled_from(["counter", "reader", "auto", "Bad Name", "b", "c", ""])
TOOLS = st.lists(st.sampled_from(["search", "count", "shell"]), max_size=3)
ROLES = st.lists(
    st.builds(NewRole, name=NAMES, description=st.text(max_size=5), system_prompt=st.text(max_size=5), tools=TOOLS)
)


@given(ROLES)
def test_roles_without_problems_make_a_team_and_stay_within_the_toolbox(roles: list[NewRole]) -> None:
    if new_role_problems(team(), roles):
        return
    grown = with_new_roles(team(), roles)
    added = grown.roles[1:]
    assert [role.name for role in added] == [role.name for role in roles]
    assert {tool for role in added for tool in role.tools} <= set(team().toolbox)
    assert all(is_name(role.name) for role in added)


def role(name: str, description: str, **fields: Any) -> Role:
    return Role(name=name, description=description, system_prompt="You work.", **fields)


def hints(*roles: Role) -> list[str]:
    return team_hints(Team(name="crew", generalist=roles[0].name, roles=list(roles)))


def test_a_team_of_few_different_roles_gets_no_hint() -> None:
    reader = role("reader", "Finds causes and definitions in the orchard's documents.", capabilities=["reading"])
    counter = role("counter", "Queries the tables of harvests and computes shares.", capabilities=["counting"])
    assert hints(reader, counter) == []


def test_too_many_roles_are_a_hint() -> None:
    many = [role(f"r{n}", f"Works on field {n} alone") for n in range(HINT_ROLES + 1)]
    assert any(f"has {len(many)} roles" in hint for hint in hints(*many))


def test_too_many_tools_of_a_role_are_a_hint() -> None:
    busy = role("busy", "Does it all.", tools=[f"tool{n}" for n in range(HINT_TOOLS + 1)])
    assert ["has 16 tools" in hint for hint in hints(busy)] == [True]


def test_roles_that_nobody_can_tell_apart_are_a_hint() -> None:
    one = role("one", "Finds causes and definitions in the documents of the orchard.")
    two = role("two", "Finds definitions and causes in documents of the orchard quickly.")
    assert ["almost the same description" in hint for hint in hints(one, two)] == [True]
    alike = [role(name, f"Work of {name}", capabilities=["sums", "maps"]) for name in ("one", "two")]
    assert ["the same capabilities" in hint for hint in hints(*alike)] == [True]


def test_a_fallback_is_meant_to_be_alike() -> None:
    alike = [role("one", "Work", capabilities=["sums"], fallback="two"), role("two", "Work", capabilities=["sums"])]
    assert hints(*alike) == []


def test_as_many_roles_and_tools_as_advised_are_no_hint() -> None:
    busy = role("busy", "Does it all.", tools=[f"tool{n}" for n in range(HINT_TOOLS)])
    assert hints(busy, *[role(f"r{n}", f"Works on field {n} alone") for n in range(HINT_ROLES - 1)]) == []


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        ("alpha beta gamma delta epsilon", "epsilon delta gamma beta alpha", True),
        ("alpha beta gamma delta", "delta gamma beta alpha", False),  # too few words to compare
        ("alpha beta gamma delta", "delta gamma beta alpha epsilon", False),
        ("a1a b1b c1c d1d e1e f1f ggg hhh", "a1a b1b c1c d1d e1e f1f iii jjj", False),  # 6 of 10 in common
        ("a1a b1b c1c d1d e1e f1f ggg hhh", "a1a b1b c1c d1d e1e f1f ggg jjj", True),
    ],
)
def test_descriptions_are_alike_above_a_share_of_common_words(one: str, two: str, alike: bool) -> None:
    assert bool(hints(role("one", one), role("two", two))) == alike
