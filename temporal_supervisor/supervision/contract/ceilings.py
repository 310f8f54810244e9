"""The operator's ceilings, which apply to every request."""

from fnmatch import fnmatchcase
from typing import Literal

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.request import Budget, RunRequest, invalid_request

InlineTeams = Literal["off", "same-team", "any"]

_DEFAULT = RunRequest(goal="any")
_SETTINGS = {
    "budget.tokens": "SUPERVISOR_MAX_BUDGET_TOKENS",
    "budget.usd": "SUPERVISOR_MAX_BUDGET_USD",
    "max_parallel": "SUPERVISOR_MAX_PARALLEL",
}


class Ceilings(Model):
    """The operator's maximum for each run; None is no ceiling, an empty list allows any model.

    With `same-team` all tools of an inline team come from one team file, so that no role combines
    the private data of one team with the outward tools of another.
    """

    tokens: int | None = None
    usd: float | None = None
    max_parallel: int = limits.MAX_PARALLEL
    models: list[str] = []
    inline_teams: InlineTeams = "any"

    def lowered(self, request: RunRequest) -> RunRequest:
        """Returns `request` with its budget and parallelism lowered to the ceilings."""
        return request.model_copy(
            update={
                "budget": self.lowered_budget(request.budget),
                "max_parallel": min(request.max_parallel, self.max_parallel),
            }
        )

    def lowered_budget(self, budget: Budget) -> Budget:
        """Returns `budget` lowered to the ceilings; no limit becomes the ceiling."""
        return budget.model_copy(
            update={
                "tokens": _least(budget.tokens, self.tokens),
                "usd": _least(budget.usd, self.usd),
            }
        )

    def check(self, request: RunRequest) -> list[str]:
        """Returns a line for each default or missing limit that `lowered` changes.

        Raises SupervisionError `InvalidRequest` if the caller asked for more than a ceiling allows.
        """
        asked = _numbers(request)
        lowered = _numbers(self.lowered(request))
        defaults = _numbers(_DEFAULT)
        lines: list[str] = []
        for name, value in asked.items():
            limit = lowered[name]
            if value == limit:
                continue
            if value not in (None, defaults[name]):
                raise invalid_request(_ceiling_exceeded(name, value, limit))
            lines.append(f"{name} is {limit:g}: {_SETTINGS[name]} is the operator's ceiling")
        return lines

    def check_totals(self, tokens: int | None, usd: float | None) -> None:
        """Raises ValueError if new totals exceed the ceilings; None leaves a total as it is."""
        totals = (("budget.tokens", tokens, self.tokens), ("budget.usd", usd, self.usd))
        for name, value, ceiling in totals:
            if value is not None and ceiling is not None and value > ceiling:
                raise ValueError(_ceiling_exceeded(name, value, ceiling))

    def check_models(self, models: list[str]) -> None:
        """Raises SupervisionError `InvalidRequest` if a model is not allowed."""
        for model in models:
            if self.models and not any(fnmatchcase(model, pattern) for pattern in self.models):
                refused = f"the model '{one_line(model, 100)}' is not allowed here"
                allowed = ", ".join(self.models)
                raise invalid_request(f"{refused}: SUPERVISOR_ALLOWED_MODELS has {allowed}")

    def check_inline_team(self, sources: frozenset[str]) -> None:
        """Checks the team files from which an inline team takes tools.

        Raises SupervisionError `InvalidRequest` if they may not be combined.
        """
        if self.inline_teams == "off":
            setting = "SUPERVISOR_INLINE_TEAMS"
            raise invalid_request(f"team: inline teams are off here ({setting}): name a team")
        if self.inline_teams == "same-team" and len(sources) > 1:
            raise invalid_request(
                f"team: its tools come from several teams ({', '.join(sorted(sources))}), which "
                "SUPERVISOR_INLINE_TEAMS=same-team does not allow"
            )


def _numbers(request: RunRequest) -> dict[str, float | None]:
    """Returns the numbers of a request that have a ceiling."""
    return {
        "budget.tokens": request.budget.tokens,
        "budget.usd": request.budget.usd,
        "max_parallel": request.max_parallel,
    }


def _ceiling_exceeded(name: str, value: float | None, ceiling: float | None) -> str:
    return f"{name}: {value} is above the operator's ceiling of {ceiling} ({_SETTINGS[name]})"


def _least(*numbers: float | None) -> float | None:
    return min((number for number in numbers if number is not None), default=None)
