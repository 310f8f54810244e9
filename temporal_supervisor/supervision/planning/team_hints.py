"""Hints for a team's author: traits that make roles or tools hard to choose for a model."""

import re
from collections.abc import Iterator
from itertools import combinations

from temporal_supervisor.supervision.contract.team import Role, Team

HINT_ROLES = 7  # among more, planners choose the wrong one more often: a team of teams does better
HINT_TOOLS = 12  # of one role: with more, models mistake one for another
HINT_OVERLAP = 0.6  # share of common words above which two descriptions say the same
HINT_WORDS = 3  # of a description that say something: fewer leave open what the role is for

_WORD = re.compile(r"\w{3,}")
_LITTLE = """
all and any anything are assistant can does everything for general goals goal helper help helps its
kinds many more other others problem problems question questions role some stuff subtask subtasks
task tasks team that the thing things this useful various what which with work works
"""
_SAY_LITTLE = frozenset(_LITTLE.split())


def team_hints(team: Team) -> list[str]:
    """Returns advice on changes to a team, one sentence each."""
    return [*_sizes(team), *_vague(team), *_overlaps(team)]


def _sizes(team: Team) -> Iterator[str]:
    """Yields hints on too many roles, and on roles with too many tools."""
    if len(team.roles) > HINT_ROLES:
        problem = f"with more than {HINT_ROLES} a planner chooses the wrong one more often"
        yield f"{len(team.roles)} roles: {problem}; make teams of some of them"
    for role in team.roles:
        if len(role.tools) > HINT_TOOLS:
            problem = f"with more than {HINT_TOOLS} a model mistakes one for another"
            yield f"role '{role.name}' has {len(role.tools)} tools: {problem}; split the role"


def _vague(team: Team) -> Iterator[str]:
    for role in team.roles:
        if len(_words(role.description) - _SAY_LITTLE) < HINT_WORDS:
            problem = "has a vague description, by which a planner cannot choose it"
            yield f"role '{role.name}' {problem}: name what it finds or makes, and from what"


def _overlaps(team: Team) -> Iterator[str]:
    for one, other in combinations(team.roles, 2):
        common = _common(one, other)
        if common:
            names = f"roles '{one.name}' and '{other.name}'"
            yield f"{names} have {common}: say what each does that the other does not"


def _common(one: Role, other: Role) -> str:
    """Returns the trait that makes two roles hard to tell apart; empty without one.

    A role that is the other's fallback or backup may resemble it.
    """
    if other.name in (one.fallback, one.backup) or one.name in (other.fallback, other.backup):
        return ""

    words = _words(one.description)
    others = _words(other.description)
    if len(words & others) > HINT_OVERLAP * len(words | others):
        return "almost the same description"
    if one.capabilities and set(one.capabilities) == set(other.capabilities):
        return "the same capabilities"
    return ""


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
