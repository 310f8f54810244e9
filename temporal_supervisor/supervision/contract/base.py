"""Base classes of models that cross a boundary, durations as people write them, bounds of JSON."""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, one_line

_SHORT = re.compile(r"(\d{1,8})\s?([smhdw])", re.ASCII)  # more weeks are no timedelta
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Model(BaseModel):
    """A value that crosses a boundary; unknown fields are ignored, for newer payloads."""

    model_config = ConfigDict(extra="ignore", validate_default=False)


class StrictModel(BaseModel):
    """A value that a person or a language model writes; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


Heading = Annotated[str, AfterValidator(partial(one_line, limit=limits.SENTENCE_BYTES))]
Sentence = Annotated[str, AfterValidator(partial(cut, limit=limits.SENTENCE_BYTES))]
Paragraph = Annotated[str, AfterValidator(partial(cut, limit=limits.PARAGRAPH_BYTES))]
ErrorText = Annotated[str, AfterValidator(partial(cut, limit=limits.ERROR_BYTES))]
Summary = Annotated[str, AfterValidator(partial(cut, limit=limits.SUMMARY_BYTES))]
"""Texts of others in history: whoever makes the value, they are no longer.

A `model_copy` does not look.
"""


def _short(value: object) -> object:
    """Returns the duration in a text like `30m`, `2h` or `7d`, and other values unchanged."""
    match = _SHORT.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else value


def matching(pattern: re.Pattern[str], rule: str) -> AfterValidator:
    """Returns a validator for texts that fully match a pattern; its error quotes the `rule`."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {rule}")
        return text

    return AfterValidator(check)


Duration = Annotated[timedelta, BeforeValidator(_short)]
"""A duration: ISO 8601 such as PT30M, short such as 30m, or a number of seconds."""


@dataclass(frozen=True)
class Undecodable:
    """A value from outside that could not be decoded; `reason` is a sentence for the sender."""

    reason: str


def depth_exceeds(value: Any, limit: int) -> bool:
    """True if lists and objects are nested more than `limit` levels deep, without recursion."""
    left = [(0, value)]
    while left:
        depth, part = left.pop()
        if depth > limit:
            return True
        if isinstance(part, dict):
            left += [(depth + 1, each) for each in part.values()]
        elif isinstance(part, list):
            left += [(depth + 1, each) for each in part]
    return False
