"""What team files name and somebody else provides: pools of Workers, models."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from activities.teams.team_definition import TeamError
from activities.teams.team_files import TeamFiles
from supervision.contract.team import Role


def named_pools(folders: Sequence[Path]) -> dict[str, list[str]]:
    """Returns the pools that team files in `folders` name, each with its roles as `team/role`."""
    pools = dict[str, list[str]]()
    for name, role in _roles(folders):
        if role.pool:
            pools.setdefault(role.pool, []).append(name)
    return pools


def named_models(folders: Sequence[Path]) -> dict[str, list[str]]:
    """Returns the models that team files in `folders` name, each with its roles as `team/role`."""
    models = dict[str, list[str]]()
    for name, role in _roles(folders):
        for model in role.model or []:
            models.setdefault(model, []).append(name)
    return models


def _roles(folders: Sequence[Path]) -> Iterator[tuple[str, Role]]:
    files = TeamFiles(list(folders))
    for name in files.names():
        try:
            team = files.definition(name)
        except TeamError:  # `starter.py teams` says it
            continue
        yield from ((f"{name}/{role.name}", role) for role in team.roles)
