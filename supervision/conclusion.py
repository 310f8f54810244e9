"""Reading a worker agent's last message: the finding's text, and what it says of itself at the end."""

import re
from dataclasses import dataclass

_CONFIDENCE = re.compile(r"^\W*confidence\W*[:=]\W*([01](?:\.\d+)?|\.\d+|\d{1,3}\s*%)", re.IGNORECASE)
_LIMITATIONS = re.compile(r"^\W*limitations?\W*[:=]\W*(.*)$", re.IGNORECASE)
_NOTHING = {"", "none", "none.", "n/a", "no", "-", "nothing"}
_TAIL_LINES = 12


@dataclass(frozen=True)
class Conclusion:
    """`text` is the message without its closing lines; `confidence` is None when the agent gave none."""

    text: str
    confidence: float | None
    limitations: list[str]


def conclude(message: str) -> Conclusion:
    """Splits off the closing lines `Confidence: 0.8` and `Limitations: ...` that roles are asked to write."""
    lines = message.rstrip().splitlines()
    confidence: float | None = None
    limitations: list[str] = []
    kept = lines[: max(0, len(lines) - _TAIL_LINES)]
    for line in lines[len(kept) :]:
        if found := _CONFIDENCE.match(line):
            confidence = _share(found.group(1))
        elif found := _LIMITATIONS.match(line):
            limitations += _parts(found.group(1))
        else:
            kept.append(line)
    return Conclusion("\n".join(kept).strip(), confidence, limitations)


def _share(text: str) -> float | None:
    value = float(text.rstrip("% ")) / 100 if text.endswith("%") else float(text)
    return value if 0 <= value <= 1 else None


def _parts(text: str) -> list[str]:
    parts = [part.strip(" *_") for part in text.split(";")]
    return [part for part in parts if part.lower() not in _NOTHING]
