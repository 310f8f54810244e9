"""Which roles a goal calls for, by the words of their names, descriptions and tools."""

import re

from standin import prompt
from standin.prompt import RoleLine
from standin.request import Request
from standin.words import overlap

_COMPOSES = re.compile(r"(?:\b|_)(writ|format|compos|draft|edit|render|report)", re.IGNORECASE)
_GATHERS = re.compile(r"(?:\b|_)(search|read|find|fetch|look)", re.IGNORECASE)
_MEASURES = re.compile(r"(?:\b|_)(data|figure|number|quer|sql|calculat|statisti|analy|table|measure)", re.IGNORECASE)
_MOST_ROLES = 4  # of a larger team only those that fit the goal best


def roles_of(request: Request, options: list[str] | None) -> list[RoleLine]:
    """The roles of the prompt that the schema offers."""
    listed = prompt.roles(request.prompt)
    if options is None:
        return listed or [RoleLine("auto")]
    known = [role for role in listed if role.name in options]
    return known or [RoleLine(name, name) for name in options if name != "auto"] or [RoleLine(options[0])]


def composes(role: RoleLine) -> bool:
    """Whether a role writes up what others found."""
    tools = " ".join(role.tools)
    purpose = f"{role.name} {tools} {' '.join(role.description.split()[:4])}"
    return bool(_COMPOSES.search(purpose)) and not (_MEASURES.search(tools) or _GATHERS.search(tools))


def measures(role: RoleLine) -> int:
    """How much of what is said of a role is about figures."""
    return len(_MEASURES.findall(role.text))


def chosen(roles: list[RoleLine], goal: list[str]) -> list[RoleLine]:
    """All roles of a small team; of a larger one those that share most words with the goal."""
    if len(roles) <= _MOST_ROLES:
        return roles
    scores = {role.name: overlap(goal, role.text) for role in roles}
    best = sorted(roles, key=lambda role: -scores[role.name])[: _MOST_ROLES - 1]
    fitting = [role for role in best if scores[role.name]] or best[:1]
    composer = next((role for role in roles if composes(role)), None)
    return [role for role in roles if role in fitting or role is composer]


def ranked(roles: list[RoleLine], goal: list[str]) -> list[tuple[int, RoleLine]]:
    """The roles with how many words they share with the goal, best first; those that compose come last."""
    scores = [(overlap(goal, role.text), role) for role in roles]
    return sorted(scores, key=lambda one: (composes(one[1]), -one[0], -measures(one[1])))
