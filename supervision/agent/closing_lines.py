"""Reading a worker agent's last message: the finding's text, and what it says of itself at the end."""

import re
from dataclasses import dataclass
from typing import Literal

from supervision.text import size

_MARKUP = r"[\s>#*_•–-]*"  # no quotes, braces or bars: a line of JSON or of a table is no closing line
_CONFIDENCE = re.compile(
    rf"{_MARKUP}confidence[\s*_]*[:=][\s*_~]*(\d*\.?\d+)(\s*%|\s*(?:/|out of)\s*1(?:\.0)?(?!\d))?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_REMARK = re.compile(r"\s*(?:\(|[.,;–—-]\s+\D)")
_LIMITATIONS = re.compile(rf"{_MARKUP}limitations?[\s*_]*[:=](.*)", re.IGNORECASE | re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)])\s+(\S.*)", re.DOTALL)
_NOTHING = {"", "none", "none.", "n/a", "no", "-", "nothing"}
_TAIL_LINES = 12
_LIMITATION_BYTES = 300  # a longer one is a paragraph: it stays in the text too


@dataclass(frozen=True)
class Conclusion:
    """`text` is the message without its closing lines; `confidence` is None when the agent gave none.

    A plain message is `done`, and has no summary of its own.
    """

    text: str
    confidence: float | None
    limitations: list[str]
    outcome: Literal["done", "partial", "impossible"] = "done"
    summary: str = ""


def conclude(message: str) -> Conclusion:
    """Returns a message without its closing lines `Confidence: 0.8` and `Limitations: ...`, and the values of these.

    A line that says more than that stays in the text. A message of nothing but closing lines is its own text.
    """
    lines = message.rstrip().splitlines(keepends=True)
    confidence: float | None = None
    limitations: list[str] = []
    text_lines = lines[: max(0, len(lines) - _TAIL_LINES)]
    index = len(text_lines)
    while index < len(lines):
        line = lines[index]
        index += 1
        if (share := _confidence(line)) is not None:
            confidence, bare = share
            text_lines += [] if bare else [line]
        elif match := _LIMITATIONS.match(line):
            items, index = ([match[1]], index) if match[1].strip(" *_\r\n") else _list_at(lines, index)
            limitations += [part for item in items for part in _parts(item)]
            text_lines += [] if items and all(size(item) <= _LIMITATION_BYTES for item in items) else [line, *items]
        else:
            text_lines.append(line)
    return Conclusion("".join(text_lines).strip() or message.strip(), confidence, limitations)


def _confidence(line: str) -> tuple[float, bool] | None:
    """Returns the confidence that a line states, and True if it states nothing else."""
    match = _CONFIDENCE.match(line)
    if not match:
        return None
    number, unit, rest = match.groups()
    value = float(number) / (100 if unit and "%" in unit else 1)
    bare = not re.search(r"[^\W_]", rest)
    return (value, bare) if value <= 1 and (bare or _REMARK.match(rest)) else None


def _list_at(lines: list[str], index: int) -> tuple[list[str], int]:
    """Returns the items of the list that begins at `index` after blank lines, and where it ends."""
    items: list[str] = []
    for at in range(index, len(lines)):
        if match := _ITEM.match(lines[at]):
            items.append(match[1])
            index = at + 1
        elif lines[at].strip():
            break
    return items, index


def _parts(text: str) -> list[str]:
    parts = [part.strip(" *_\r\n") for part in text.split(";")]
    return [part for part in parts if part.lower() not in _NOTHING]
