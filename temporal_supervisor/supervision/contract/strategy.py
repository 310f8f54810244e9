"""The strategies of a run, as data."""

from typing import Literal, NamedTuple

StrategyName = Literal["auto", "plan", "route", "step"]


class Strategy(NamedTuple):
    """A strategy of a run; its prompts are in `activities/questions/planning_prompts.py`.

    One that `plans_steps` plans a subtask at a time, so it has no replans. With `fixed_routes` the
    team's routes are tried before the planner. If the answer is a `finding`, it is the single
    finding word for word; otherwise it is written.
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
