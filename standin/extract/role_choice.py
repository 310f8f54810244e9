"""The roles that a goal calls for, by the words of their names, descriptions and tools."""

import re

from standin.extract import prompt_parts
from standin.extract.prompt_parts import RoleLine
from standin.extract.schema_fill import Filler
from standin.extract.text.words import shared
from standin.server.api_request import ApiRequest, Json

_COMPOSES = re.compile(r"(?:\b|_)(writ|format|compos|draft|edit|render|report)", re.IGNORECASE)
_GATHERS = re.compile(r"(?:\b|_)(search|read|find|fetch|look|data|quer|sql|calculat|analy|table)", re.IGNORECASE)
_MEASURES = re.compile(r"(?:\b|_)(data|figure|number|quer|sql|calculat|statisti|analy|table|measure)", re.IGNORECASE)
_MOST_ROLES = 4  # of a larger team only those that fit the goal best


def offered(request: ApiRequest, filler: Filler, role: Json) -> list[RoleLine]:
    """Returns the roles of the prompt that the schema of `role` offers."""
    listed = prompt_parts.roles(request.prompt)
    options = [name for name in filler.resolve(role).get("enum") or [] if name != "auto"]
    known = [line for line in listed if not options or line.name in options]
    return known or [RoleLine(name, name) for name in options or ["auto"]]


def composes(role: RoleLine) -> bool:
    """True if a role writes up what others found."""
    tools = " ".join(role.tools)
    purpose = f"{role.name} {tools} {' '.join(role.description.split()[:4])}"
    return bool(_COMPOSES.search(purpose)) and not _GATHERS.search(tools)


def measures(role: RoleLine) -> int:
    """Returns how much of a role's text is about figures."""
    return len(_MEASURES.findall(role.text))


def chosen(roles: list[RoleLine], goal: list[str]) -> list[RoleLine]:
    """Returns all roles of a small team; of a larger one those that share most words with the goal."""
    if len(roles) <= _MOST_ROLES:
        return roles
    best = [role for score, role in ranked(roles, goal) if score and not composes(role)][: _MOST_ROLES - 1]
    composer = next((role for role in roles if composes(role)), None)
    return [role for role in roles if role in (best or roles[:1]) or role is composer]


def ranked(roles: list[RoleLine], goal: list[str]) -> list[tuple[int, RoleLine]]:
    """Returns the roles with how many words they share with the goal, best first, those that compose last."""
    scores = [(len(shared(goal, role.text)), role) for role in roles]
    return sorted(scores, key=lambda entry: (composes(entry[1]), -entry[0], -measures(entry[1])))
