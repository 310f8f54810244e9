"""Checks of an environment for oddities that stop nothing: misspelt variables, missing folders."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.text import did_you_mean

_PREFIX = "SUPERVISOR_"
_BESIDE = ("SUPERVISOR_CACHE_DIR", "SUPERVISOR_TEMPORAL")  # read where no settings are
_FOLDERS = {"teams_dir": "SUPERVISOR_TEAMS_DIR", "secrets_dir": "SUPERVISOR_SECRETS_DIR"}


def odd_settings(settings: Settings, variables: Iterable[str]) -> Iterator[str]:
    """Yields a sentence for each variable that no setting has, and for each folder or team that is not there."""
    known = [*_BESIDE, *map(_variable, Settings.model_fields)]
    for name in sorted(variables):
        if not name.startswith(_PREFIX) or name in known:
            continue
        meant = get_close_matches(name, known, 1)
        yield f"{name} is no setting and has no effect" + (f": did you mean {meant[0]}?" if meant else "")
    for field, variable in _FOLDERS.items():
        folder = getattr(settings, field)
        if folder is not None and not folder.is_dir():
            yield f"{variable} names {folder}, where there is no folder"
    teams = {file.parent.name for folder in settings.teams_folders for file in folder.glob("*/team.toml")}
    if settings.team not in teams:
        yield f"SUPERVISOR_TEAM names '{settings.team}', and no such team is here{did_you_mean(settings.team, teams)}"


def _variable(field: str) -> str:
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"{_PREFIX}{field.upper()}"
