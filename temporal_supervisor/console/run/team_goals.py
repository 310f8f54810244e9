"""The goals of a team in its `goals.toml`: who takes each, and the facts of a good answer."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from temporal_supervisor.console.base.command import FAILED, CommandFailed
from temporal_supervisor.supervision.contract.base import StrictModel
from temporal_supervisor.supervision.contract.request import describe_errors
from temporal_supervisor.supervision.contract.strategy import StrategyName

GOALS = "goals.toml"


class TeamGoal(StrictModel):
    """A goal, the role that takes it, and the facts that its answer `says`.

    Of words between "|" in a fact one is enough. With `route` a fixed route takes the goal, so no
    planner is asked. The `reply` is given to each question of the run to a person.
    """

    goal: str
    role: str
    says: Annotated[list[str], Field(min_length=1)]
    strategy: StrategyName | None = None
    route: bool = False
    reply: str = ""

    def falls_short(self, result: Mapping[str, Any]) -> list[str]:
        """Returns the facts and the role that a result lacks."""
        answer = result["answer"].casefold()
        missing = [f"says {fact}" for fact in self.says if not _has_fact(fact, answer)]
        if self.role not in {subtask["role"] for subtask in result["subtasks"]}:
            missing.append(f"role {self.role}")
        return missing


class TeamGoals(StrictModel):
    """The goals of a team, and their default strategy; `data` is a folder next to the file."""

    strategy: StrategyName
    data: str = ""
    goals: Annotated[list[TeamGoal], Field(min_length=1)]

    def options(self, goal: TeamGoal) -> dict[str, Any]:
        """Returns the fields of a goal's request, without team and data."""
        return {"goal": goal.goal, "strategy": goal.strategy or self.strategy}


def read_goals(folder: Path) -> TeamGoals | None:
    """Returns the goals of the team in a folder; None without any.

    Raises CommandFailed for an invalid file.
    """
    file = folder / GOALS
    if not file.is_file():
        return None
    try:
        return TeamGoals.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise CommandFailed(FAILED, f"{file}: {describe_errors(error, root='goals')}") from None
    except (ValueError, OSError) as error:
        raise CommandFailed(FAILED, f"{file}: {error}") from None


def _has_fact(fact: str, answer: str) -> bool:
    return any(words.casefold() in answer for words in fact.split("|"))
