"""The strategies of a run, as data."""

from typing import Literal, NamedTuple

StrategyName = Literal["auto", "plan", "route", "step"]


class Strategy(NamedTuple):
    """A strategy; `activities/questions/planning_prompts.py` has its prompts.

    One that `plans_steps` plans a subtask at a time, and so replans none. With `fixed_routes` the
    team's routes come before the planner. An answer that is a `finding` is the single finding, word
    for word; other answers are written.
    """

    plans_steps: bool = False
    fixed_routes: bool = False
    answer: Literal["written", "finding"] = "written"


STRATEGIES: dict[StrategyName, Strategy] = {
    "auto": Strategy(fixed_routes=True),
    "plan": Strategy(),
    "route": Strategy(fixed_routes=True, answer="finding"),
    "step": Strategy(plans_steps=True),
}
