"""Cutting, cleaning and measuring text and writing amounts of money, the same way everywhere."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

NAME_SHOWN_BYTES = 60  # an id or a name in a message: what a model sends in its place may be a text
_MARK = "…"
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
# C0 and C1 controls; zero-width, direction-changing and tag characters, in which instructions can
# be hidden. Joiners (\u200c and \u200d) stay: letters of some scripts and many emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_LINE_END = re.compile(r"[^\n]")
_LAST_LINE_CHARS = 80
_LINKS = re.compile(r"([\\\[\]<])")


def size(text: str) -> int:
    """Returns the bytes of `text` in UTF-8; lone surrogates count as their replacement."""
    return len(text.encode("utf-8", "replace"))


def cut(text: str, limit: int, mark: str = _MARK) -> str:
    """Returns `text` in at most `limit` bytes of UTF-8, ending in `mark` if it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    end = max(0, limit - len(mark.encode()))
    return data[:end].decode("utf-8", "ignore") + (mark if limit >= len(mark.encode()) else "")


def one_line(text: str, limit: int) -> str:
    """Returns `text` on one line, cut to `limit` bytes.

    White space and controls become single spaces. Hidden characters, such as those that turn the
    direction of writing, are left out.
    """
    return cut(" ".join(_HIDDEN.sub("", _SPACE.sub(" ", text)).split()), limit)


def label(text: str, limit: int) -> str:
    """Returns foreign text as a label in the Web UI, with its Markdown and HTML escaped."""
    return _LINKS.sub(r"\\\1", one_line(text, limit))


def quoted(name: str) -> str:
    """Returns a name in quotes, on one line and cut to the length of a name."""
    return f"'{one_line(name, NAME_SHOWN_BYTES)}'"


def blanks_for(text: str) -> str:
    """Returns blanks in place of a text, with its line ends, so that places behind it stay."""
    return _NO_LINE_END.sub(" ", text)


def has_whole(text: str, words: str) -> bool:
    """True if a text contains these words as whole words, not inside longer ones."""
    if words not in text:
        return False  # most often: no pattern is made for it
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def closest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name with the most similar spelling; None if none is similar."""
    by_letters = {
        candidate.lower().replace("_", "").replace("-", ""): candidate for candidate in known
    }
    typed = one_line(name, 100).lower().replace("_", "").replace("-", "")
    close = get_close_matches(typed, by_letters, n=1, cutoff=0.7)
    return by_letters[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns `, did you mean '...'?` with the closest known name; "" without one."""
    meant = closest(name, known)
    return f", did you mean {quoted(meant)}?" if meant else ""


def slug(text: str, limit: int = 40) -> str:
    """Returns the lower-case words of `text` joined by hyphens, for ids.

    `Which region sold most?` becomes `which-region-sold-most`, a text without words `goal`.
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return words[:limit].strip("-") or "goal"


def money(usd: float | None) -> str:
    """Returns a cost in dollars for people; an unknown cost (None) is never shown as 0."""
    if usd is None:
        return "cost unknown"
    if usd == 0:
        return "$0"
    return f"${usd:.4f}" if usd < 1 else f"${usd:,.2f}"


def clean(text: str) -> str:
    """Returns `text` without escape sequences, control and hidden characters.

    Line ends become newlines.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", _HIDDEN.sub("", _ANSI.sub("", text)))


def cap(text: str, limit: int) -> str:
    """Returns `text` cleaned and cut to `limit` characters.

    If it was cut, a last line gives the number of missing characters.
    """
    whole = len(text)
    # More would be cut anyway; cleaning megabytes blocks the event loop.
    cleaned = clean(text[: 4 * limit])
    if len(cleaned) <= limit and whole <= 4 * limit:
        return cleaned
    beginning = cleaned[: limit - _LAST_LINE_CHARS]
    return f"{beginning}\n[cut: {whole - len(beginning)} of {whole} characters are left out]"
