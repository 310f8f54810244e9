"""The definition of a team, read from its `team.toml` alone, and how a problem of its files is told."""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from activities.teams.toolbox import complaints
from supervision import limits
from supervision.contract.team import Team
from supervision.errors import ErrorKind, SupervisionError
from supervision.text import one_line


class TeamError(SupervisionError):
    """A team that cannot be used: `UnknownTeam` for names and files, `InvalidRequest` for inline teams."""


def read_definition(folder: Path) -> Team:
    """Returns what the folder's team.toml says, without running any code of the team. Raises TeamError."""
    file = folder / "team.toml"
    with naming(file):
        if file.stat().st_size > limits.TEAM_FILE_BYTES:
            raise ValueError(f"the file is larger than {limits.TEAM_FILE_BYTES} bytes")
        read = tomllib.loads(file.read_text(encoding="utf-8"))
        try:
            team = Team.model_validate(read)
        except ValidationError as error:
            raise ValueError(complaints(error, read)) from error
        if team.name != folder.name:
            raise ValueError(f"name: '{team.name}' must be the folder's name, '{folder.name}'")
        return team


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Turns what is wrong with a team's files into a TeamError that names the file."""
    try:
        yield
    except ValidationError as error:
        raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file}: {complaints(error)}") from error
    except RecursionError:
        raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file}: it is nested too deeply") from None
    except (ValueError, OSError) as error:  # TOML errors are ValueErrors that name the line
        raise TeamError(ErrorKind.UNKNOWN_TEAM, f"{file}: {one_line(str(error), limits.ERROR_BYTES)}") from error
