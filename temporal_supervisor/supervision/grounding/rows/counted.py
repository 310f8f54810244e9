"""Counts of a text beside those of queries: one that counts the rows of a value has one cell."""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.row_facts import Places, words_of
from temporal_supervisor.supervision.grounding.written_figures import SMALL

_COUNTS = re.compile(r"\bcount\s?\(", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,2}(?![\w.,-]*\w)")
_WHOLE = re.compile(r"\d{1,2}")


def wrong_counts(text: str, sources: Sequence[tuple[Places, str]]) -> Iterator[tuple[str, str]]:
    """Yields each sentence that gives another small number than a query counted, with the reason.

    It names what the query counted. Larger numbers are looked up like all figures. `sources` are
    tables with the query that gave them.
    """
    found = [_count(places, arguments) for places, arguments in sources]
    counted = [each for each in found if each is not None]
    if not counted:
        return
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        words = {*words_of(sentence)}
        said = {int(number) for number in _NUMBER.findall(sentence)}
        said = {number for number in said if 0 < number < SMALL}
        about = [number for number, names in counted if names <= words]
        if said and about and said.isdisjoint(about):
            yield sentence.strip(), f"the query counted {about[0]}"


def _count(places: Places, arguments: str) -> tuple[int, set[str]] | None:
    """Returns the small number that a query counted, and the words by which it chose its rows."""
    query, tables = places.query, places.tables
    if query is None or not _COUNTS.search(arguments):
        return None
    if len(tables) != 1 or len(tables[0].rows) != 1:
        return None
    cells = tables[0].rows[0].cells
    if len(cells) != 1 or not _WHOLE.fullmatch(cells[0]) or int(cells[0]) >= SMALL:
        return None
    values = [value for each in query.filters.values() for value in each.values if not each.ranged]
    names = {word for value in values for word in words_of(value)}
    is_named = any(not word.isdigit() for word in names)
    return (int(cells[0]), names) if is_named else None
