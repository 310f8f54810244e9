"""Text on the terminal: made safe, and written to the right stream.

Models and tools may write escape sequences, by accident or on purpose. Results go to standard output, everything
else to standard error.
"""

import json
import re
import sys
import unicodedata

from pydantic import BaseModel, JsonValue
from rich.console import Console

_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*+(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x90\x98\x9c\x9e\x9f]*+(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]"  # the rest, and strings that never end: their text stays
)
_NEW_LINES = re.compile("\r\n|[\r\x85\u2028\u2029]")
_JOINERS = "\u200c\u200d"  # letters of some scripts and many emoji need them
_SPACE = re.compile(r"\s+")


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
