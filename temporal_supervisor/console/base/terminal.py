"""Text on the terminal, with unsafe characters removed, on the right stream.

Models and tools may write escape sequences, by accident or on purpose. Results go to standard
output, everything else to standard error.
"""

import io
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, Any, NamedTuple, Protocol

from pydantic import JsonValue
from pydantic_core import to_jsonable_python
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from temporal_supervisor.runtime.process import write_stderr
from temporal_supervisor.supervision.base import limits

_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    # DCS, SOS, PM, APC.
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f]*+(?:\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]"  # the rest, and strings that never end: their text stays
)
_NEW_LINES = re.compile("\r\n|[\r\x85\u2028\u2029]")
_KEPT = "\n\t\u200c\u200d"  # joiners: letters of some scripts and many emoji need them
_INSTEAD = {"Cc": "", "Cf": "", "Cs": "\ufffd", "Zl": "\n", "Zp": "\n"}  # by category
_SPACE = re.compile(r"\s+")
# Signs that are seen as nothing.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_UNPLAIN = re.compile(r"[^\n -~]")
_LATIN = frozenset(  # Cyrillic and Greek letters that look like Latin ones
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
)
_LOOK_ALIKES = 8  # letters named below a text
_COMMAND = re.compile(r"`([^`]*)`[,;.:]?")  # stays on one row as long as it fits, to be copied
_GLUE = "\ue000"
_LEAST_WIDTH = 20
_MOST_CHARS = 1_200  # of a text that is broken into rows


def safe(text: str) -> str:
    """Returns `text` without escape sequences, control and bidirectional characters.

    Line breaks and tabs stay.
    """
    return "".join(map(_allowed, _NEW_LINES.sub("\n", _SEQUENCES.sub("", text))))


def safe_line(text: str, limit: int) -> str:
    """Returns `safe` text on one line of at most `limit` characters.

    A longer text ends in an ellipsis.
    """
    line = _SPACE.sub(" ", safe(text)).strip()
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def safe_json(value: JsonValue) -> str:
    """Returns JSON for any terminal; characters that `safe` removes are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(c if c == "\n" or _allowed(c) == c else json.dumps(c)[1:-1] for c in text)


def revealed(text: str, kept: str = "") -> str:
    """Returns `text` with invisible characters and odd spaces as `<U+202E>`.

    Line breaks and the characters in `kept` stay.
    """

    def seen(found: re.Match[str]) -> str:
        char = found[0]
        return f"<U+{ord(char):04X}>" if char not in kept and _is_hidden(char) else char

    return _UNPLAIN.sub(seen, text)


def _is_hidden(char: str) -> bool:
    """True for a character that is not seen as itself: a sign without form, or an odd space."""
    if char in "\n ":
        return False
    if char == "\t" or _allowed(char) != char or _BLANK.match(char):
        return True
    return unicodedata.category(char) == "Zs"


def look_alikes(text: str) -> list[str]:
    """Returns a line for each letter that looks like a Latin one and may deceive.

    It may if its word also has Latin letters, or looks Latin in a text that is not in its script.
    """
    foreign = {char for char in text if char.isalpha() and not char.isascii()}
    odd = {char for char in foreign if _looks_latin(char)}
    is_of_other_script = any("LATIN" not in unicodedata.name(char, "") for char in foreign - odd)

    found: dict[tuple[str, str], None] = {}
    for word in re.findall(r"\w+", text):
        if is_of_other_script and not re.search("[A-Za-z]", word):
            continue
        for char in word:
            if char in odd:
                found[char, word] = None
    lines = [f"U+{ord(char):04X} {unicodedata.name(char)} in {word[:40]}" for char, word in found]
    if len(lines) <= _LOOK_ALIKES:
        return lines
    return [*lines[:_LOOK_ALIKES], f"and {len(lines) - _LOOK_ALIKES} more"]


def _looks_latin(char: str) -> bool:
    """True for a letter of another script, or of another style, that looks like a Latin one."""
    return char in _LATIN or unicodedata.normalize("NFKC", char).isascii()


def counted(number: int, noun: str) -> str:
    """Returns `1 finding` or `2 findings`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def file_size(size: int) -> str:
    """Returns a number of bytes for people: `31 kB`, `2.4 MB`."""
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e3:,.0f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def duration(seconds: float, digits: int = 0) -> str:
    """Returns seconds for people: `4 s`, `0:02:05`."""
    if seconds < 60:
        return f"{max(0, seconds):.{digits}f} s"
    return str(timedelta(seconds=int(seconds)))


def roughly(seconds: float) -> str:
    """Returns estimated seconds for people: `20 s`, `3 min`, `1 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 55:
        return f"{max(10, round(seconds, -1)):.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def _allowed(char: str) -> str:
    return char if char in _KEPT else _INSTEAD.get(unicodedata.category(char), char)


def console(*, stderr: bool = False, file: IO[str] | None = None) -> Console:
    """Returns a rich console for a stream, for our own strings only.

    Foreign text is passed as `Text` or Markdown.
    """
    options: dict[str, Any] = {
        "markup": False,
        "highlight": False,
        "emoji": False,
        "stderr": stderr,
        "file": file,
    }
    made = _Console(**options)
    if made.is_terminal and file is None:
        return made
    return _Console(**options, width=400, color_system=None)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves the error to the command, which ends normally: rich would exit with 1."""
        raise BrokenPipeError


def print_out(text: str) -> None:
    """Writes text to standard output, made safe, with a line break."""
    sys.stdout.write(safe(text) + "\n")
    sys.stdout.flush()


def print_err(text: str) -> None:
    """Writes text to standard error, made safe, with a line break."""
    write_stderr(safe(text))


def print_json(value: object) -> None:
    """Writes models, data classes and plain values to standard output as JSON."""
    print_out(safe_json(to_jsonable_python(value)))


class ScreenRow(Protocol):
    """A row of a report that depends on the screen: a table, a paragraph, an answer."""

    def renderables(self, screen: Console) -> Iterable[RenderableType]:
        """Yields the parts of the row for a screen."""


Rows = Iterable[ScreenRow | RenderableType]
"""Rows of a report. A `str` may be foreign text: a terminal breaks it, elsewhere it is one line."""


@dataclass(frozen=True)
class Report:
    """The result of a command: `data` for programs, `rows` for people, and the exit code.

    `notes` are printed to standard error with the rows, `error` always.
    """

    data: object
    rows: Rows = ()
    notes: Sequence[str] = ()
    error: str = ""
    code: int = 0

    def print_to(self, screen: Console | None = None, *, as_json: bool = False) -> int:
        """Prints the report and returns its exit code."""
        if as_json:
            print_json(self.data)
        else:
            print_rows(screen or console(), self.rows)
            for note in self.notes:
                print_err(note)
        if self.error:
            print_err(self.error)
        return self.code

    def text(self) -> str:
        """Returns the rows as text, as they are printed without a terminal."""
        written = io.StringIO()
        print_rows(console(file=written), self.rows)
        return written.getvalue()


def print_rows(screen: Console, rows: Rows) -> None:
    """Prints the rows of a report.

    A `Text` is never wrapped, and neither is a line with a command, so that it can be copied.
    """
    for row in rows:
        parts = row.renderables(screen) if hasattr(row, "renderables") else [row]
        for part in parts:
            _print_part(screen, part)


def _print_part(screen: Console, part: RenderableType) -> None:
    if isinstance(part, str) and not screen.is_terminal:
        screen.file.write(safe(part) + "\n")
        return
    is_command = isinstance(part, str) and _COMMAND.search(part) is not None
    is_uncut = isinstance(part, Text) or is_command
    shown = Text(safe(part)) if isinstance(part, str) else part
    screen.print(shown, crop=False, soft_wrap=is_uncut)


class Either(NamedTuple):
    """A cell with a shorter text for terminals."""

    short: str
    whole: str


@dataclass(frozen=True)
class TextTable:
    """A table of foreign text: columns of words, then of `numbers`.

    The column `wide` gets the remaining width.
    """

    names: Sequence[str]
    cells: Iterable[Sequence[str | Either]]
    numbers: Sequence[str] = ()
    wide: str = ""

    def renderables(self, screen: Console) -> Iterable[RenderableType]:
        """Yields the table."""
        expand = bool(self.wide) and screen.is_terminal
        made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=expand)
        for name in self.names:
            if name == self.wide:
                ratio = 1 if screen.is_terminal else None
                made.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
            else:
                made.add_column(name, overflow="fold")
        for name in self.numbers:
            made.add_column(name, justify="right", no_wrap=True)
        for row in self.cells:
            words = [_words_of(cell, screen) for cell in row]
            made.add_row(*(Text(safe_line(cell, limits.PARAGRAPH_BYTES)) for cell in words))
        if not screen.is_terminal:
            screen.width = limits.PARAGRAPH_BYTES * len(made.columns)  # nothing is cut for a pipe
        yield made


def _words_of(cell: str | Either, screen: Console) -> str:
    if isinstance(cell, str):
        return cell
    return cell.short if screen.is_terminal else cell.whole


@dataclass(frozen=True)
class Paragraph:
    """Foreign text, indented and wrapped between words; one line without a terminal."""

    text: str
    columns: int
    style: str = "dim"

    def renderables(self, screen: Console) -> Iterable[RenderableType]:
        """Yields the paragraph."""
        if screen.is_terminal:
            yield indented(self.text, self.columns, self.style)
        else:
            yield " " * self.columns + self.text


@dataclass(frozen=True)
class Remark:
    """Foreign text as wrapped rows, see `wrapped`; with `is_one_row` cut to one row."""

    text: str
    style: str
    is_one_row: bool = False

    def renderables(self, screen: Console) -> Iterable[RenderableType]:
        """Yields the rows."""
        if not self.is_one_row:
            return wrapped(self.text, screen.width, self.style)
        row = Text(self.text, style=self.style)
        row.truncate(screen.width, overflow="ellipsis")
        return [row]


def indented(text: str, columns: int, style: str = "") -> Padding:
    """Returns foreign text as an indented paragraph, wrapped between words."""
    return Padding(Text(safe(text), style=style), (0, 0, 0, columns), expand=False)


def wrapped(text: str, width: int, style: str) -> list[Text]:
    """Returns foreign text as indented rows, wrapped between words, without cuts.

    A command that does not fit gets a wider row of its own, which the terminal wraps, so that it is
    copied as one piece.
    """
    shown = safe_line(text, _MOST_CHARS)
    room = max(_LEAST_WIDTH, width - 2)
    rows: list[Text] = []
    start = 0
    for command in _COMMAND.finditer(shown):
        if cell_len(command[0]) > room:
            rows += _broken(shown[start : command.start()], room, style, first=not rows)
            rows.append(Text(command[1], style=style))
            start = command.end()
    return rows + _broken(shown[start:], room, style, first=not rows)


def _broken(text: str, room: int, style: str, *, first: bool) -> list[Text]:
    """Returns a text as rows of `room` columns, of which only the `first` begins further left."""
    glued = _COMMAND.sub(lambda command: command[0].replace(" ", _GLUE), text.strip())
    rows = []
    indent = " " if first else "  "
    for part in Text(glued).wrap(Console(width=room), room):
        row = part.plain.replace(_GLUE, " ").rstrip()
        if row:
            rows.append(Text(indent + row, style=style))
        indent = "  "
    return rows
