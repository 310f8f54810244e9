"""Hints for a team's author: too many roles, too many tools, roles that nobody can tell apart."""

from typing import Any

import pytest

from supervision.contract.team import Role, Team
from supervision.planning.team_hints import HINT_ROLES, HINT_TOOLS, team_hints


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
