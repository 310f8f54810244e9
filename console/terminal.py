"""Text on the terminal: made safe, and written to the right stream.

Models and tools may write escape sequences, by accident or on purpose. Results go to standard output, everything
else to standard error.
"""

import json
import re
import sys
import unicodedata
from collections.abc import Iterable

from pydantic import BaseModel, JsonValue
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from console import console_limits

_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f]*+(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]"  # the rest, and strings that never end: their text stays
)
_NEW_LINES = re.compile("\r\n|[\r\x85\u2028\u2029]")
_JOINERS = "\u200c\u200d"  # letters of some scripts and many emoji need them
_SPACE = re.compile(r"\s+")
_COMMAND = re.compile(r"`([^`]*)`[,;.:]?")  # stays on one row as long as it fits, to be copied
_GLUE = "\ue000"
_LEAST_WIDTH = 20


def safe(text: str) -> str:
    """Returns `text` without escape sequences, control and bidirectional characters; line breaks and tabs stay."""
    return "".join(map(_allowed, _NEW_LINES.sub("\n", _SEQUENCES.sub("", text))))


def safe_line(text: str, limit: int) -> str:
    """Returns `safe` text on one line of at most `limit` characters, cut with an ellipsis."""
    line = _SPACE.sub(" ", safe(text)).strip()
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def safe_json(value: JsonValue) -> str:
    """Returns JSON that any terminal may show: characters that `safe` removes are escaped, so nothing is lost."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(c if c == "\n" or _allowed(c) == c else _escaped(c) for c in text)


def counted(number: int, noun: str) -> str:
    """Returns `1 finding` or `2 findings`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _allowed(char: str) -> str:
    if char in "\n\t" or char in _JOINERS:
        return char
    match unicodedata.category(char):
        case "Cc" | "Cf":
            return ""
        case "Cs":
            return "\ufffd"
        case "Zl" | "Zp":
            return "\n"
    return char


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def console(*, stderr: bool = False) -> Console:
    """Returns a rich console of a stream. It takes our own strings only: foreign text goes in as `Text` or Markdown."""
    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made = Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=400, color_system=None)
    return made


def print_out(text: str) -> None:
    """Writes text to standard output, made safe, with a line break."""
    sys.stdout.write(safe(text) + "\n")
    sys.stdout.flush()


def print_json(value: BaseModel | JsonValue) -> None:
    """Writes a value to standard output as JSON."""
    plain: JsonValue = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    sys.stdout.write(safe_json(plain) + "\n")
    sys.stdout.flush()


def print_err(text: str) -> None:
    """Writes text to standard error, made safe, with a line break."""
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()


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
