"""The rows of `doctor`: the state of one thing, with the fix if something is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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


def row_texts(row: CheckRow, width: int) -> Iterator[Text]:
    """Yields a row as lines in columns, which are left for a command that is too long for the last one."""
    begins = Text.assemble((f"{row.level:<{_NAME_COLUMN}}", _STYLES[row.level]), row.name.ljust(_NAME_CHARS), " ")
    room = width - len(begins)
    for text in [*wrapped(row.text, room, ""), *wrapped(row.fix, room, "dim")]:
        yield Text.assemble(begins, text) if text.cell_len <= room else text
        begins = Text(" " * len(begins))
