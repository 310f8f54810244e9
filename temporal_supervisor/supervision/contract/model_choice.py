"""Fallback chains of models, and efforts, as requests and team files name them."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import StrictModel

MODEL_CHAIN = 5  # models that stand in for each other: more are no plan for an outage

Effort = Literal["low", "medium", "high"]
OutputTokens = Annotated[int, Field(ge=256, le=limits.MAX_TOKENS_CEILING)]
"""The most that one reply may have, its thinking included.

256 hold a short finding and the call that hands it in.
"""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _usable(chain: list[str]) -> list[str]:
    if not chain:
        raise ValueError("an empty list names no model: name one, or leave the field out")
    if len(chain) > MODEL_CHAIN:
        raise ValueError(
            f"{len(chain)} models are more than the {MODEL_CHAIN} that may stand in for each other"
        )
    if len(set(chain)) < len(chain):
        raise ValueError("the models must differ")
    return chain


ModelName = Annotated[str, Field(min_length=1, max_length=200)]
ModelChain = Annotated[list[ModelName], BeforeValidator(_as_list), AfterValidator(_usable)]
"""Models in order: each takes over where those before it are not served, are down, or refuse."""


def chain_of(setting: str) -> list[str]:
    """Returns the models in a comma-separated setting.

    Raises ValueError if they are no valid fallback chain.
    """
    if not all(names := [name.strip() for name in setting.split(",")]):
        raise ValueError("name a model, or several separated by commas")
    return _usable(names)


class Efforts(StrictModel):
    """The efforts of a subtask's `first` and `later` attempts, or one word for both.

    None means the model's default.
    """

    first: Effort | None = None
    later: Effort | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_word_for_both(cls, value: Any) -> Any:
        return {"first": value, "later": value} if isinstance(value, str) else value

    def of_attempt(self, number: int) -> Effort | None:
        """Returns the effort of an attempt, counted from 1."""
        return self.first if number <= 1 else self.later


OptionalStep = Literal["review", "refine", "replan", "judge"]
"""The steps of a supervisor that a run can do without.

They are left out where the supervisor's model gains nothing by them.
"""


def is_off(step: OptionalStep, model: str, off: Mapping[str, Sequence[OptionalStep]]) -> bool:
    """True if a step is switched off for a model.

    `off` has the steps by model name or pattern, such as `{"qwen*": ["review"]}`.
    """
    return any(step in steps and fnmatchcase(model, name) for name, steps in off.items())
