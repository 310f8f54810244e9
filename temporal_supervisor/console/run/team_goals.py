"""The goals of a team, in the `goals.toml` beside its file: who takes each, and what a good answer says."""

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
    """A goal, the role that takes it, and what its answer says: of words between "|" one is enough.

    With `route` a fixed route takes it, so no planner is asked. A `reply` is what a person writes who is asked.
    """

    goal: str
    role: str
    says: Annotated[list[str], Field(min_length=1)]
    strategy: StrategyName | None = None
    route: bool = False
    reply: str = ""

    def falls_short(self, result: Mapping[str, Any]) -> list[str]:
        """Returns the facts and the role of a good answer that this result lacks."""
        answer = result["answer"].casefold()
        missing = [f"says {fact}" for fact in self.says if not _has_fact(fact, answer)]
        if self.role not in {subtask["role"] for subtask in result["subtasks"]}:
            missing.append(f"role {self.role}")
        return missing


class TeamGoals(StrictModel):
    """The goals of a team, with the strategy of those that name none; `data` is a folder beside the file."""

    strategy: StrategyName
    data: str = ""
    goals: Annotated[list[TeamGoal], Field(min_length=1)]

    def options(self, goal: TeamGoal) -> dict[str, Any]:
        """Returns the fields of a request for a goal, beside its team and its data."""
        return {"goal": goal.goal, "strategy": goal.strategy or self.strategy}


def read_goals(folder: Path) -> TeamGoals | None:
    """Returns the goals of the team in this folder; None if it has none. Raises CommandFailed for a broken file."""
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
