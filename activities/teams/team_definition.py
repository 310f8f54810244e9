"""The definition of a team, read from its `team.toml` alone, and how a problem of its files is told."""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from activities.teams.toolbox import complaints
from supervision import limits
from supervision.contract.request import complaint_lines
from supervision.contract.team import Team
from supervision.errors import ErrorKind, SupervisionError
from supervision.text import one_line, quoted


class TeamError(SupervisionError):
    """A team that cannot be used: `UnknownTeam` for names and files, `InvalidRequest` for inline teams.

    `problems` are those of its files, one by one, where the message has them all.
    """

    def __init__(self, kind: ErrorKind, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(kind, message)
        self.problems = problems


def read_definition(folder: Path) -> Team:
    """Returns what the folder's team.toml says, without running any code of the team. Raises TeamError."""
    file = folder / "team.toml"
    with naming(file):
        team, problems = as_team(read_table(file), folder)
        if team is None or problems:
            raise ValueError("; ".join(problems))
        return team


def read_table(file: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file. Raises ValueError or OSError if it can't be read."""
    if file.stat().st_size > limits.TEAM_FILE_BYTES:
        raise ValueError(f"the file is larger than {limits.TEAM_FILE_BYTES} bytes")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def as_team(read: dict[str, Any], folder: Path) -> tuple[Team | None, list[str]]:
    """Returns the team that a file describes, None if it is none, and all that is wrong with it."""
    problems = list[str]()
    team = None
    try:
        team = Team.model_validate(read)
    except ValidationError as error:
        problems = [line.removeprefix("request: ") for line in complaint_lines(error, value=read)]
    if isinstance(name := read.get("name"), str) and name != folder.name:
        problems.append(f"name: {quoted(name)} must be the folder's name, '{folder.name}'")
    return team, problems


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
