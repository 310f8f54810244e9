"""Foreign text in rows that fit the terminal, nothing cut."""

import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from console import console_limits
from console.terminal import safe_line

_COMMAND = re.compile(r"`([^`]*)`[,;.:]?")  # stays on one row as long as it fits, to be copied
_GLUE = "\ue000"
_LEAST_WIDTH = 20


def wrapped(text: str, width: int, style: str) -> list[Text]:
    """Returns foreign text as rows that fit the terminal: broken between words, indented, nothing cut.

    A command that does not fit is a row by itself, wider than the others, which the terminal breaks: so it is copied
    as one piece.
    """
    shown = safe_line(text, console_limits.STANDSTILL_CHARS)
    room = max(_LEAST_WIDTH, width - 2)
    rows: list[Text] = []
    start = 0
    for command in _COMMAND.finditer(shown):
        if cell_len(command[0]) > room:
            rows += _broken(shown[start : command.start()], room, style, first=not rows)
            rows.append(Text(command[1], style=style))
            start = command.end()
    return rows + _broken(shown[start:], room, style, first=not rows)


def folded(rows: Iterable[Text], width: int) -> list[Text]:
    """Returns the rows for a picture that is drawn over in place: those that are too wide are broken here."""
    return [part for row in rows for part in row.wrap(Console(width=width), width)]


def _broken(text: str, room: int, style: str, *, first: bool) -> list[Text]:
    glued = _COMMAND.sub(lambda command: command[0].replace(" ", _GLUE), text.strip())
    rows = [row.plain.replace(_GLUE, " ").rstrip() for row in Text(glued).wrap(Console(width=room), room)]
    return [Text((" " if first and not number else "  ") + row, style=style) for number, row in enumerate(rows) if row]
