"""Foreign text made fit for a terminal: models and tools may write escape sequences, or be told to."""

import json
import re
import unicodedata

from pydantic import JsonValue

_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c]*(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]"  # the rest, and strings that never end: their text stays
)
_NEW_LINES = re.compile("\r\n|[\r\x85\u2028\u2029]")
_JOINERS = "\u200c\u200d"  # letters of some scripts and many emoji need them
_SPACE = re.compile(r"\s+")


def safe(text: str) -> str:
    """`text` without escape sequences, control and bidirectional characters; line breaks and tabs stay."""
    return "".join(map(_allowed, _NEW_LINES.sub("\n", _SEQUENCES.sub("", text))))


def safe_line(text: str, limit: int) -> str:
    """`safe` text on one line of at most `limit` characters, cut with an ellipsis."""
    line = _SPACE.sub(" ", safe(text)).strip()
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def safe_json(value: JsonValue) -> str:
    """JSON that any terminal may show: what `safe` removes is escaped instead, so nothing is lost."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(c if c == "\n" or _allowed(c) == c else _escaped(c) for c in text)


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
