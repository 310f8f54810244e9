"""Doubts about the order in which a query takes rows: by letters, or by a column nobody named.

Example: "the last stadium on this chart" asks for the last row, and the query sorts by capacity.
"""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.spoken_words import stems
from temporal_supervisor.supervision.grounding.doubts import question_patterns as patterns
from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry
from temporal_supervisor.supervision.grounding.doubts.mismatched_results import DATED
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import Day, named_date

_LEAST_VALUES = 3  # fewer are in order by chance
_ROW_ORDER = re.compile(r"\browid\b|\brow_number\b")
# The first word or number of a value: "10" of "10 m" and "€10", "Lap" of "Lap 10".
_BEGINNING = re.compile(r"\d+|[^\W\d_]+")


def sorted_by_letters(inquiry: Inquiry) -> Iterator[str]:
    """Yields the columns of texts that a query sorts or compares, and whose numbers it misreads.

    Example: as texts `10` comes before `9`, and `April` before `March`.
    """
    texts = {column.name: column.values for column in inquiry.columns if column.is_text}
    ordered = [name for shape in inquiry.shapes for name in shape.ordered]
    for name in dict.fromkeys(ordered):
        if _is_misread(texts.get(name, [])):
            yield f"the query sorts or compares {name} by its letters, and it holds numbers"


def sorted_against_the_list(inquiry: Inquiry) -> Iterator[str]:
    """Yields the column that the only query sorts by, where a row is asked for by its place.

    A date is as good: what comes last may be listed last.
    """
    query = inquiry.only_query
    if query is None or not patterns.LISTED.search(inquiry.question):
        return
    if _ROW_ORDER.search(query.shape.bare):
        return
    known = {column.name for column in inquiry.columns}  # names of its own may count or rank
    asked = stems(words_of(inquiry.question))
    for name in query.shape.ordered:
        is_other = name in known and asked.isdisjoint(stems(words_of(name)))
        if is_other and not DATED.search(name.replace("_", " ")):
            yield f"the query sorts by {name}, and the question asks for the order of the list"


def _is_misread(values: Sequence[str]) -> bool:
    """True if texts are numbers or dates, and their letters give them another order."""
    read = map(_place_of, sorted(values))
    places = [place for place in read if place is not None]
    most_are_numbers = len(places) >= max(_LEAST_VALUES, len(values) / 2)
    return most_are_numbers and places != sorted(places)


def _place_of(value: str) -> Day | None:
    """Returns a text that is a date or begins with a number as a date; None for any other.

    Examples: `10 m` gives (0, 0, 10), and `March 4, 1984` gives (1984, 3, 4).
    """
    date = named_date(value)
    if date is not None:
        return date
    beginning = _BEGINNING.search(value.replace(",", ""))
    if beginning is None or not beginning[0].isdigit():
        return None
    return 0, 0, int(beginning[0])
