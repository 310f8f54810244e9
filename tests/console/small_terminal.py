"""A terminal in few lines: what its screen shows, and what somebody copies from it."""

import re

from rich.cells import cell_len

_PIECE = re.compile(r"\x1b\[\??([\d;]*)([a-zA-Z])|(.)", re.DOTALL)


class SmallTerminal:
    """Takes what a program writes. It knows what rich uses: colours, a way up, erasing of a line."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[str] = [""]
        self._go_on: set[int] = set()
        self._row = 0
        self._column = 0

    def write(self, text: str) -> None:
        """Takes more text; a line feed begins a line, as the driver of a terminal has it."""
        for number, kind, char in _PIECE.findall(text):
            if char:
                self._put(char)
            elif kind == "A":
                self._row = max(0, self._row - int(number or 1))
                self._column = min(self._column, self._columns - 1)
            elif kind == "K":
                assert number == "2"
                self._rows[self._row] = ""
                self._go_on.discard(self._row)
            else:
                assert kind in "mhl", kind

    def flush(self) -> None:
        """Nothing is held back."""

    def rows(self) -> list[str]:
        """Returns what stands on the screen."""
        return [row.rstrip() for row in self._rows]

    def copied(self) -> list[str]:
        """Returns the lines as they are copied: rows that the terminal broke are one."""
        lines: list[str] = []
        for number, row in enumerate(self._rows):
            if number - 1 in self._go_on:
                lines[-1] += row
            else:
                lines.append(row)
        return [line.rstrip() for line in lines]

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._next_row()
        else:
            if self._column + cell_len(char) > self._columns:
                self._go_on.add(self._row)
                self._next_row()
            kept = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = kept[: self._column] + char + kept[self._column + 1 :]
            self._column += cell_len(char)

    def _next_row(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append("")
