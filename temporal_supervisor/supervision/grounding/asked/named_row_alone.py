"""Questions for a row beside a named one, whose query looks at the named row and at no other.

Example: `SELECT match FROM matches WHERE match = 'GL-B-5'` for "Which match comes after GL-B-5?"
"""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.grounding.asked.asked_and_read import AskedAndRead, place_of
from temporal_supervisor.supervision.grounding.asked.query_shape import QueryShape
from temporal_supervisor.supervision.grounding.asked.values_left_out import is_common

_BESIDE = frozenset(["after", "before", "following", "preceding", "follows", "precedes", "than"])
_WORDS_BETWEEN = 2  # as in "after the GL-B-5"
_WORD = re.compile(r"\w+")
_LOOKS_FURTHER = re.compile(r"\bjoin\b|\bselect\b.*\bselect\b|\bor\b|\boffset\b", re.DOTALL)


def named_row_alone(asked: AskedAndRead) -> Iterator[str]:
    """Yields the name of the row at which the only query looks, where another one is asked for."""
    # Another query may have looked up where the named row is.
    if len(asked.queries) != 1:
        return
    shape = asked.queries[0].shape
    if _looks_further(shape):
        return

    words = _WORD.findall(asked.question.lower())
    text = shape.chosen[0]
    key = tuple(_WORD.findall(text.lower()))
    place = place_of(key, words) if key and not is_common(key) else -1
    if place >= 0 and _is_compared(words, place, len(key)):
        yield f"the query looks at {quoted(text)} alone, and the question asks for another"


def _looks_further(shape: QueryShape) -> bool:
    if len(shape.chosen) != 1 or shape.compares or shape.sorts or shape.subtracts:
        return True
    return _LOOKS_FURTHER.search(shape.bare) is not None


def _is_compared(words: Sequence[str], place: int, size: int) -> bool:
    """True if a name stands behind a word for "beside", or before "the same ... as"."""
    before = words[max(0, place - 1 - _WORDS_BETWEEN) : place]
    if not _BESIDE.isdisjoint(before):
        return True
    behind = words[place + size :]
    return "same" in behind and "as" in behind
