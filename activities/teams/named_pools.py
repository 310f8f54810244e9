"""The pools of Workers that team files name."""

from collections.abc import Sequence
from pathlib import Path

from activities.teams.team_definition import TeamError
from activities.teams.team_files import TeamFiles


def named_pools(folders: Sequence[Path]) -> dict[str, list[str]]:
    """Returns the pools that team files in `folders` name, each with its roles as `team/role`."""
    files, pools = TeamFiles(list(folders)), dict[str, list[str]]()
    for name in files.names():
        try:
            team = files.definition(name)
        except TeamError:  # `starter.py teams` says it
            continue
        for role in team.roles:
            if role.pool:
                pools.setdefault(role.pool, []).append(f"{name}/{role.name}")
    return pools
