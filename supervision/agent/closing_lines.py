"""What a worker agent concludes, and reading a message that does so without a call of `finish`."""

import re
from dataclasses import dataclass
from typing import Literal

from supervision import limits
from supervision.text import size

_MARKUP = str.maketrans("", "", "*_>#")
_CLOSING = re.compile(r"(confidence|limitations?) ?:(.*)", re.IGNORECASE)
_SHARE = re.compile(r"(\d?\.?\d{1,6}) ?(%?)\.?")
_NOTHING = {"", "none", "none.", "n/a", "no", "-", "nothing"}


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
    """Returns a message without its last lines `Confidence: 0.8` and `Limitations: ...; ...`, and what these say.

    A line that says more than that stays in the text. A message of nothing but closing lines is its own text.
    """
    lines = message.strip().splitlines(keepends=True)
    confidence, limitations = None, list[str]()
    while lines:
        match = _CLOSING.fullmatch(lines[-1].translate(_MARKUP).strip(" -\r\n"))
        if match and match[1].lower() == "confidence" and (share := _share(match[2].strip())) is not None:
            confidence = share
        elif match and match[1].lower() != "confidence" and size(match[2]) <= limits.LIMITATION_BYTES:
            limitations = [part for part in map(str.strip, match[2].split(";")) if part.lower() not in _NOTHING]
        elif not lines[-1].isspace():
            break
        lines.pop()
    return Conclusion("".join(lines).strip() or message.strip(), confidence, limitations)


def _share(said: str) -> float | None:
    match = _SHARE.fullmatch(said)
    value = float(match[1]) / (100 if match[2] else 1) if match else None
    return value if value is not None and value <= 1 else None
