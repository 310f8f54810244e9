"""Rows that a question names: a query leaves them out, or looks at them and at no other.

Examples: `SELECT Rider FROM race WHERE Rider <> 'Sebastian Porto' ORDER BY Pos LIMIT 1` for the
question who came right after Sebastian Porto. It returns the winner, whoever he is. And
`SELECT match FROM matches WHERE match = 'GL-B-5'` for "Which match comes after GL-B-5?"
"""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.grounding.doubts import question_patterns as patterns
from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry, place_of
from temporal_supervisor.supervision.grounding.doubts.query_shape import QueryShape
from temporal_supervisor.supervision.grounding.doubts.values_left_out import is_common
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

# "Who else", "another ship", "other than": a question with such a word may want all others.
_OTHERS = re.compile(
    r"\b(?:not|no|never|n't|others?|another|else|except|besides?|without|excluding|apart|same|than"
    r"|nicht|kein\w*|ander\w*|außer|ohne)\b",
    re.IGNORECASE,
)
_BESIDE = frozenset(["after", "before", "following", "preceding", "follows", "precedes", "than"])
_WORDS_BETWEEN = 2  # as in "after the GL-B-5"
_WORD = re.compile(r"\w+")
# A query that reaches other rows: "join", a second SELECT, "or", "offset".
_LOOKS_FURTHER = re.compile(r"\bjoin\b|\bselect\b.*\bselect\b|\bor\b|\boffset\b", re.DOTALL)


def names_excluded(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about the texts that queries leave out although the question names them."""
    if _OTHERS.search(inquiry.question):
        return

    words = words_of(patterns.without_exceptions(inquiry.question))
    chosen = {text.lower() for shape in inquiry.shapes for text in shape.chosen}
    for shape in inquiry.shapes:
        for text in shape.excluded:
            key = tuple(words_of(text))
            names_nothing = not key or is_common(key)
            if text.lower() in chosen or names_nothing:
                continue
            if place_of(key, words) >= 0:
                yield f"the query leaves out {quoted(text)}, which the question names"


def named_row_alone(inquiry: Inquiry) -> Iterator[str]:
    """Yields the name of the row at which the only query looks, where another one is asked for."""
    # Another query may have looked up where the named row is.
    if len(inquiry.queries) != 1:
        return
    shape = inquiry.queries[0].shape
    if _looks_further(shape):
        return

    words = _WORD.findall(inquiry.question.lower())
    text = shape.chosen[0]
    key = tuple(_WORD.findall(text.lower()))
    place = place_of(key, words) if key and not is_common(key) else -1
    if place >= 0 and _is_compared(words, place, len(key)):
        yield f"the query looks at {quoted(text)} alone, and the question asks for another"


def _looks_further(shape: QueryShape) -> bool:
    """True if a query may have reached other rows than those of one text."""
    if len(shape.chosen) != 1 or shape.compares or shape.sorts or shape.subtracts:
        return True
    return _LOOKS_FURTHER.search(shape.bare) is not None


def _is_compared(words: Sequence[str], place: int, size: int) -> bool:
    """True if a name is behind a word for "beside", or before "the same ... as".

    Examples: "right after Sebastian Porto", "Which ship has Aurora the same flag as?"
    """
    before = words[max(0, place - 1 - _WORDS_BETWEEN) : place]
    if not _BESIDE.isdisjoint(before):
        return True
    behind = words[place + size :]
    return "same" in behind and "as" in behind
