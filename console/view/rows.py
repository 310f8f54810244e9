"""Foreign text in rows that fit the terminal, nothing cut; what is to be copied stays one piece, however long."""

import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import ControlType, Segment
from rich.text import Text

from console import console_limits
from console.terminal import safe_line

_COMMAND = re.compile(r"`([^`]*)`[,;.:]?")  # stays on one row as long as it fits, to be copied
_GLUE = "\ue000"
_LEAST_WIDTH = 20


class WholeRow:
    """A text wider than the terminal, which breaks it by itself: so it is copied as one piece.

    To rich it is as many rows as it fills: a live picture is drawn over as often as it changes.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def height(self, width: int) -> int:
        """Returns how many rows it fills: a wide character that has no room any more begins the next."""
        rows, column = 1, 0
        for cells in map(cell_len, self._text):
            if column + cells > width:
                rows, column = rows + 1, 0
            column += cells
        return rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal:
            yield Segment(self._text)
            yield Segment.line()
            return
        # Rich breaks and crops what it knows as text, so this is a control sequence to it. The cursor goes back up to
        # the first row, from where the line breaks that rich counts lead down again.
        height = self.height(options.max_width)
        up = f"\x1b[{height - 1}A" if height > 1 else ""
        yield Segment(self._text + up, None, [(ControlType.CURSOR_UP, height - 1)])
        for _ in range(height):
            yield Segment.line()


def wrapped(text: str, width: int, style: str) -> list[Text]:
    """Returns foreign text as rows that fit the terminal: broken between words, indented, nothing cut.

    A command that does not fit is a row by itself, wider than the others: see `whole_rows`.
    """
    shown = safe_line(text, console_limits.STANDSTILL_CHARS)
    rows: list[Text] = []
    start = 0
    for command in _COMMAND.finditer(shown):
        if cell_len(command[0]) > _room(width):
            rows += broken(_glued(shown[start : command.start()]), width, style, goes_on=bool(rows))
            rows.append(Text(command[1], style=style))
            start = command.end()
    return rows + broken(_glued(shown[start:]), width, style, goes_on=bool(rows))


def whole_rows(rows: Iterable[Text], width: int) -> list[RenderableType]:
    """Returns the rows for a picture that counts them."""
    return [WholeRow(row.plain.strip()) if row.cell_len > width else row for row in rows]


def height_of(rows: Iterable[RenderableType], width: int) -> int:
    """Returns how many rows of the terminal these fill, each of the others one."""
    return sum(row.height(width) if isinstance(row, WholeRow) else 1 for row in rows)


def _glued(text: str) -> str:
    return _COMMAND.sub(lambda command: one_word(command[0]), text.strip())


def one_word(text: str) -> str:
    """Returns a text that `broken` breaks only where it has no room on a row of its own."""
    return text.replace(" ", _GLUE)


def broken(text: str, width: int, style: str, *, goes_on: bool = False) -> list[Text]:
    """Returns the rows of a text, see `one_word`; the first is less indented than others unless it `goes_on`."""
    room = _room(width)
    rows = [row.plain.replace(_GLUE, " ").rstrip() for row in Text(text).wrap(Console(width=room), room)]
    return [Text(("  " if number or goes_on else " ") + row, style=style) for number, row in enumerate(rows) if row]


def _room(width: int) -> int:
    return max(_LEAST_WIDTH, width - 2)
