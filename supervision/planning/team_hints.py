"""Hints for a team's author: what makes it hard to choose the right role or tool."""

import re
from itertools import combinations

from supervision.contract.team import Role, Team

HINT_ROLES = 10  # among more, models choose the wrong one too often: a team of teams does better
HINT_TOOLS = 15  # of one role: with more, models mistake one for another
_HINT_OVERLAP = 0.6  # share of common words above which two descriptions mean the same

_LEAST_WORDS = 5  # fewer say too little to compare


def team_hints(team: Team) -> list[str]:
    """Returns what should be changed in a team, one sentence each; empty if nothing is odd."""
    hints = []
    if len(team.roles) > HINT_ROLES:
        hints.append(
            f"team '{team.name}' has {len(team.roles)} roles: above {HINT_ROLES} the planner chooses the wrong one "
            "more often, make teams of some of them"
        )
    hints += [
        f"role '{role.name}' of team '{team.name}' has {len(role.tools)} tools: above {HINT_TOOLS} models mistake one "
        "for another, split the role"
        for role in team.roles
        if len(role.tools) > HINT_TOOLS
    ]
    hints += [
        f"roles '{one.name}' and '{other.name}' of team '{team.name}' have {overlap}: say what each does that the "
        "other does not"
        for one, other in combinations(team.roles, 2)
        if (overlap := _overlap(one, other))
    ]
    return hints


def _overlap(one: Role, other: Role) -> str | None:
    """Returns what two roles have in common that should tell them apart; substitutes are meant to be alike."""
    if other.name == one.fallback or one.name == other.fallback:
        return None
    words, others = _words(one.description), _words(other.description)
    enough = min(len(words), len(others)) >= _LEAST_WORDS
    if enough and len(words & others) / len(words | others) > _HINT_OVERLAP:
        return "almost the same description"
    if one.capabilities and set(one.capabilities) == set(other.capabilities):
        return "the same capabilities"
    return None


def _words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w{3,}", text)}
