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
_SAY_LITTLE = frozenset(
    [
        "all",
        "and",
        "any",
        "anything",
        "are",
        "assistant",
        "can",
        "does",
        "everything",
        "for",
        "general",
        "goals",
        "goal",
        "helper",
        "help",
        "helps",
        "its",
        "kinds",
        "many",
        "more",
        "other",
        "others",
        "problem",
        "problems",
        "question",
        "questions",
        "role",
        "some",
        "stuff",
        "subtask",
        "subtasks",
        "task",
        "tasks",
        "team",
        "that",
        "the",
        "thing",
        "things",
        "this",
        "useful",
        "various",
        "what",
        "which",
        "with",
        "work",
        "works",
    ]
)


def team_hints(team: Team) -> list[str]:
    """Returns advice on changes to a team, one sentence each."""
    return [*_sizes(team), *_vague(team), *_overlaps(team)]


def _sizes(team: Team) -> Iterator[str]:
    if len(team.roles) > HINT_ROLES:
        yield (
            f"{len(team.roles)} roles: with more than {HINT_ROLES} a planner chooses the wrong one more often; "
            "make teams of some of them"
        )
    for role in team.roles:
        if len(role.tools) > HINT_TOOLS:
            yield (
                f"role '{role.name}' has {len(role.tools)} tools: with more than {HINT_TOOLS} a model mistakes one "
                "for another; split the role"
            )


def _vague(team: Team) -> Iterator[str]:
    for role in team.roles:
        if len(_words(role.description) - _SAY_LITTLE) < HINT_WORDS:
            yield (
                f"role '{role.name}' has a vague description, by which a planner cannot choose it: name what it finds "
                "or makes, and from what"
            )


def _overlaps(team: Team) -> Iterator[str]:
    for one, other in combinations(team.roles, 2):
        if common := _common(one, other):
            yield (f"roles '{one.name}' and '{other.name}' have {common}: say what each does that the other does not")


def _common(one: Role, other: Role) -> str:
    """Returns the trait that makes two roles hard to tell apart; empty without one.

    A role that is the other's fallback or backup may resemble it.
    """
    if other.name in (one.fallback, one.backup) or one.name in (other.fallback, other.backup):
        return ""
    words, others = _words(one.description), _words(other.description)
    if len(words & others) > HINT_OVERLAP * len(words | others):
        return "almost the same description"
    if one.capabilities and set(one.capabilities) == set(other.capabilities):
        return "the same capabilities"
    return ""


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
