"""Texts that a question names, and that a query only leaves out.

Example: `SELECT Rider FROM race WHERE Rider <> 'Sebastian Porto' ORDER BY Pos LIMIT 1` for the
question who came right after Sebastian Porto. It returns the winner, whoever he is.
"""

import re
from collections.abc import Iterator

from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.grounding.asked import asked_words as said
from temporal_supervisor.supervision.grounding.asked.asked_and_read import AskedAndRead, place_of
from temporal_supervisor.supervision.grounding.asked.values_left_out import is_common
from temporal_supervisor.supervision.grounding.rows.row_facts import words_of

# A question with such a word may want all others.
_OTHERS = re.compile(
    r"\b(?:not|no|never|n't|others?|another|else|except|besides?|without|excluding|apart|same|than"
    r"|nicht|kein\w*|ander\w*|außer|ohne)\b",
    re.IGNORECASE,
)


def names_excluded(asked: AskedAndRead) -> Iterator[str]:
    """Yields doubts about the texts that queries leave out although the question names them."""
    if _OTHERS.search(asked.question):
        return

    words = words_of(said.without_exceptions(asked.question))
    chosen = {text.lower() for shape in asked.shapes for text in shape.chosen}
    for shape in asked.shapes:
        for text in shape.excluded:
            key = tuple(words_of(text))
            names_nothing = not key or is_common(key)
            if text.lower() in chosen or names_nothing:
                continue
            if place_of(key, words) >= 0:
                yield f"the query leaves out {quoted(text)}, which the question names"
