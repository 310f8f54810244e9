"""A row of the command `doctor`."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class CheckRow:
    """The state of one thing that a run needs."""

    level: Level
    name: str
    text: str
    fix: str = ""
