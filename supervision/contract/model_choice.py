"""The models that work is given to, and how hard they try: what requests and team files say of them."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from supervision.base import limits
from supervision.contract.base import StrictModel

Effort = Literal["low", "medium", "high"]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _usable(chain: list[str]) -> list[str]:
    if not chain:
        raise ValueError("an empty list names no model: name one, or leave the field out")
    if len(chain) > limits.MODEL_CHAIN:
        raise ValueError(f"{len(chain)} models are more than the {limits.MODEL_CHAIN} that may stand in for each other")
    if len(set(chain)) < len(chain):
        raise ValueError("the models must differ")
    return chain


ModelName = Annotated[str, Field(min_length=1, max_length=200)]
ModelChain = Annotated[list[ModelName], BeforeValidator(_as_list), AfterValidator(_usable)]
"""A model, or several: each takes over where those before it are not served, in an outage, or refuse."""


def chain_of(setting: str) -> list[str]:
    """Returns the models that a setting names, separated by commas; an empty one names no model.

    Raises ValueError if they are no fallback chain.
    """
    return _usable([name.strip() for name in setting.split(",")])


class Efforts(StrictModel):
    """The efforts of a subtask's `first` attempt and of `later` ones; None is the model's own default.

    One word stands for both.
    """

    first: Effort | None = None
    later: Effort | None = None

    @model_validator(mode="before")
    @classmethod
    def _both(cls, value: Any) -> Any:
        return {"first": value, "later": value} if isinstance(value, str) else value

    def of_attempt(self, number: int) -> Effort | None:
        """Returns the effort of an attempt, which are counted from 1."""
        return self.first if number <= 1 else self.later
