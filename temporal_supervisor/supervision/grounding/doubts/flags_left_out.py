"""Columns of yes and no that a question names, and that no query reads.

Example: `SELECT count(*) FROM orders` for "How many orders were returned?", where `Returned` holds
yes and no. An alias such as `AS "Returned orders"` does not read the column.
"""

from collections.abc import Iterator

from temporal_supervisor.supervision.base.spoken_words import stems
from temporal_supervisor.supervision.base.text import has_whole
from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry
from temporal_supervisor.supervision.grounding.doubts.query_shape import QueryShape
from temporal_supervisor.supervision.grounding.rows.listed_tables import ListedColumn
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

_WORDS = """
yes no y n true false t f 1 0 ja nein j x wahr falsch oui non si sí sim não
"""
_YES_AND_NO = frozenset(_WORDS.split())
_VERBS = frozenset(words_of("is was has had did does are were be been ist war hat wurde"))


def flags_left_out(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about the columns of yes and no that a question names."""
    if any(shape.shows_all for shape in inquiry.shapes):
        return

    wanted = stems(words_of(inquiry.question))
    for column in inquiry.columns:
        words = [word for word in words_of(column.name) if word not in _VERBS]
        if not words or not stems(words) <= wanted or not _is_flag(column):
            continue
        if not any(_reads(shape, column.name) for shape in inquiry.shapes):
            yield f"the query does not read {column.name}, which the question names"


def _is_flag(column: ListedColumn) -> bool:
    """True if a column holds nothing but yes and no, in whatever words."""
    if column.ends is not None:
        return column.ends == ("0", "1")
    values = {value.lower() for value in column.values}
    return bool(values) and values <= _YES_AND_NO


def _reads(shape: QueryShape, name: str) -> bool:
    """True if a query has the name of a column, in quotes or as a whole word."""
    if name.lower() in (each.lower() for each in shape.names):
        return True
    return has_whole(shape.bare, name.lower())
