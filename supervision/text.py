"""Cutting and measuring text, the same way everywhere."""

import re
import unicodedata

_MARK = "…"
_JOINERS = "\u200c\u200d"  # letters of some scripts and many emoji need them
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def size(text: str) -> int:
    """Bytes of `text` in UTF-8; lone surrogates count as their replacement."""
    return len(text.encode("utf-8", "replace"))


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` bytes of UTF-8, marked with an ellipsis where it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    keep = max(0, limit - len(_MARK.encode()))
    return data[:keep].decode("utf-8", "ignore") + (_MARK if limit >= len(_MARK.encode()) else "")


def one_line(text: str, limit: int) -> str:
    """`text` on one line, cut to `limit` bytes; runs of white space and control characters become one space.

    Characters that only change how others are shown, such as those that turn the direction of writing, are left out.
    """
    if not text.isascii():
        text = "".join(char for char in text if char in _JOINERS or unicodedata.category(char) != "Cf")
    return cut(_SPACE.sub(" ", text).strip(), limit)


def slug(text: str, limit: int = 40) -> str:
    """Lower-case words of `text` joined by hyphens, for ids; `goal` when nothing is left."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return words[:limit].strip("-") or "goal"
