"""The base of every model that crosses a boundary."""

from dataclasses import dataclass
from typing import Any

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


def depth_exceeds(value: Any, limit: int) -> bool:
    """True if lists and objects lie in each other more than `limit` levels deep. Needs no stack."""
    level = [value]
    for _ in range(limit + 1):
        level = [part for parent in level for part in _parts(parent)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
