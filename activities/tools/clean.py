"""Text from outside, cleaned of characters that harm terminals or databases, or hide instructions."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])")
# C0 and C1 controls; zero-width, direction-changing and tag characters, in which instructions can be hidden.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LAST_LINE_CHARS = 80


def clean(text: str) -> str:
    """Returns `text` without escape sequences, control and hidden characters; line ends are newlines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", _HIDDEN.sub("", _ANSI.sub("", text)))


def cap(text: str, limit: int) -> str:
    """Returns `text` cleaned and cut to `limit` characters; a last line says how much is missing."""
    whole = len(text)
    cleaned = clean(text[: 4 * limit])  # more would be cut anyway; cleaning megabytes blocks the event loop
    if len(cleaned) <= limit and whole <= 4 * limit:
        return cleaned
    beginning = cleaned[: limit - _LAST_LINE_CHARS]
    return f"{beginning}\n[cut: {whole - len(beginning)} of {whole} characters are left out]"
