"""The ends of sentences, and the beginnings of their clauses."""

import re

_SHORT = (
    "[A-ZÄÖÜdeuz]",
    "Dr",
    "Mr",
    "Mrs",
    "Prof",
    "St",
    "Nr",
    "No",
    "Abs",
    "Art",
    "bzw",
    "ca",
    "approx",
    "vs",
)
_UNFINISHED = "".join(rf"(?<!\b{word}\.)" for word in _SHORT)  # Abs. 2, and below 25.08. bis

SENTENCE_END = re.compile(rf"(?<=[.!?]){_UNFINISHED}\s+(?![a-zäöüßàâéèê])|(?<=[。！？])|\n+")

CLAUSE_END = re.compile(
    r"[,;:|)、，；：]|\s[-–—]+\s|\s(?:and|but|while|whereas|to|or|und|aber|während|auf|bis|oder|et|mais|à|y|pero)\s",
    re.IGNORECASE,
)
"""What parts a figure's words from those of the next figure.

A bracket ends what it says of the figure before it.
"""


HALF_END = re.compile(
    r"[;；]|\s(?:while|whereas|but|während|aber|tandis que|mientras)\s", re.IGNORECASE
)
"""What parts a sentence into halves, each with what it says of its figures."""


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Returns the start and end of each sentence, item of a list, row of a table and heading."""
    ends = [(match.start(), match.end()) for match in SENTENCE_END.finditer(text)]
    starts = [0, *(end for _, end in ends)]
    stops = [*(start for start, _ in ends), len(text)]
    return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]
