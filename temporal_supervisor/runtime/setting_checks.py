"""Checks of an environment for faults that stop nothing at once.

Examples are misspelt variables, missing folders and `/v1` in the URL.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import NamedTuple
from urllib.parse import urlsplit

from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import did_you_mean, one_line

_PREFIX = "SUPERVISOR_"
_BESIDE = ("SUPERVISOR_CACHE_DIR", "SUPERVISOR_TEMPORAL")  # read where no settings are
_API_PATHS = ("/v1/messages", "/v1")  # the longer one first
_FOLDERS = {"teams_dir": "SUPERVISOR_TEAMS_DIR", "secrets_dir": "SUPERVISOR_SECRETS_DIR"}


class WrongPath(NamedTuple):
    """A base URL with a part of the API's paths, which the client adds itself.

    Every call would get a 404.
    """

    problem: str
    fix: str


def wrong_path(settings: Settings) -> WrongPath | None:
    """Returns the problem of such a base URL; None for other URLs."""
    given = (settings.anthropic_base_url or "").rstrip("/")
    parts = urlsplit(given)
    known = next((end for end in _API_PATHS if parts.path.endswith(end)), None)
    if known is None:
        return None
    problem = f"ANTHROPIC_BASE_URL ends in {known}, to which the client adds /v1/messages"
    right = one_line(given.removesuffix(known), limits.LINE_BYTES)
    fix = "leave that out" if parts.username else f"leave that out: ANTHROPIC_BASE_URL={right}"
    return WrongPath(problem, fix)


def start_warnings(settings: Settings, variables: Iterable[str]) -> Iterator[str]:
    """Yields the warnings of a Worker's start: `odd_settings` and a wrong URL path."""
    yield from odd_settings(settings, variables)
    path = wrong_path(settings)
    if path:
        yield f"{path.problem}: {path.fix}"


def odd_settings(settings: Settings, variables: Iterable[str]) -> Iterator[str]:
    """Yields a sentence for each unknown variable, and each missing folder or team."""
    known = [*_BESIDE, *map(_variable, Settings.model_fields)]
    for name in sorted(variables):
        if not name.startswith(_PREFIX) or name in known:
            continue
        similar = get_close_matches(name, known, 1)
        meant = f": did you mean {similar[0]}?" if similar else ""
        yield f"{name} is no setting and has no effect{meant}"

    for field, variable in _FOLDERS.items():
        folder = getattr(settings, field)
        if folder is not None and not folder.is_dir():
            yield f"{variable} names {folder}, where there is no folder"

    files = [file for folder in settings.teams_folders for file in folder.glob("*/team.toml")]
    teams = {file.parent.name for file in files}
    if settings.team not in teams:
        unknown = f"SUPERVISOR_TEAM names '{settings.team}', and no such team is here"
        yield f"{unknown}{did_you_mean(settings.team, teams)}"


def _variable(field: str) -> str:
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"{_PREFIX}{field.upper()}"
