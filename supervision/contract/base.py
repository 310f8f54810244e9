"""The base of every model that crosses a boundary."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A value that crosses a boundary. Unknown fields are ignored, so old code reads newer payloads."""

    model_config = ConfigDict(extra="ignore", validate_default=False)


class StrictModel(BaseModel):
    """A value that a person or a language model writes. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Undecodable:
    """Stands for a value that came from outside and could not be decoded; `reason` is a sentence for its sender."""

    reason: str
