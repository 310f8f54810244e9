"""The rows of `doctor`: the state of one thing each, and the fix for a problem."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.text import Text

from temporal_supervisor.console.base.terminal import wrapped

Level = Literal["ok", "warning", "problem"]
_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAME_COLUMN, _NAME_CHARS = 9, 24  # where the names begin, and how long they are


@dataclass(frozen=True)
class CheckRow:
    """The state of one thing that a run needs."""

    level: Level
    name: str
    text: str
    fix: str = ""

    def renderables(self, screen: Console) -> Iterator[Text]:
        """Yields columns, and a long command on a line of its own."""
        level = (f"{self.level:<{_NAME_COLUMN}}", _STYLES[self.level])
        begins = Text.assemble(level, self.name.ljust(_NAME_CHARS), " ")
        room = screen.width - len(begins)
        for text in [*wrapped(self.text, room, ""), *wrapped(self.fix, room, "dim")]:
            yield Text.assemble(begins, text) if text.cell_len <= room else text
            begins = Text(" " * len(begins))
