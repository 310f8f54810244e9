"""Counts of a text beside those of queries: one that counts the rows of a value has one cell."""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.row_facts import Places
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import is_year
from temporal_supervisor.supervision.grounding.written_figures import (
    SMALL,
    Figure,
    is_same_in_any_scale,
    small_numbers,
    whole_values,
)

_COUNTS = re.compile(r"\bcount\s?\(", re.IGNORECASE)
# "There are 7."; not "7.5", "2004", "t-7".
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,2}(?![\w.,-]*\w)")
# "There are 1,234 rows"; not "$1,234", "12%".
_ANY_NUMBER = re.compile(r"(?<![\w.,$€£-])\d[\d,.]*\d(?![\w%-]|\s?%)")
_DIGITS = re.compile(r"\d[\d,]*")
_WHOLE = re.compile(r"\d{1,6}")


def wrong_counts(text: str, sources: Sequence[tuple[Places, str]]) -> Iterator[tuple[str, str]]:
    """Yields each sentence that gives another number than a query counted, with the reason.

    The sentence names what the query counted. Larger numbers may be of something else in it: one is
    compared if it is alone there, and the counted one is nowhere in the text. `sources` are tables
    with the query that gave them.
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
        small = [number for number in about if number < SMALL]
        if said and small and said.isdisjoint(about):
            yield sentence.strip(), f"the query counted {small[0]}"
        elif about and not small and _is_another(sentence, text, about):
            yield sentence.strip(), f"the query counted {about[0]}"


def unreported(text: str, asked: str, places: Places) -> tuple[str, str] | None:
    """Returns the first sentence with a number, if a text lacks the only one that its query gave.

    None if it has that, in whatever scale, or no number but those that were `asked` for. A result
    of 0 or 1 may be told by any words.
    """
    result = _only_figure(places)
    if result is None or abs(result.readings[-1].value) <= 1:
        return None
    value = result.readings[-1].value
    known = {figure.digits for figure in whole_values(asked)}
    written = whole_values(text)
    own = [figure for figure in written if figure.digits not in known]
    said = [figure for figure in own if not is_year(figure.digits)]
    is_told = any(is_same_in_any_scale(each, value) for each in written)
    if not said or is_told or value in small_numbers(text):
        return None
    for start, stop in sentence_spans(text):
        if start <= said[0].start < stop:
            return text[start:stop].strip(), f"the query gave {result.digits}"
    return None


def _only_figure(places: Places) -> Figure | None:
    """Returns the figure of a result of one row, if there is no other one in it."""
    found = [figure for cell in _only_row(places) for figure in whole_values(cell)]
    return found[0] if len(found) == 1 else None


def _only_row(places: Places) -> tuple[str, ...]:
    """Returns the cells of a result of one row; none of any other."""
    rows = [row for table in places.tables for row in table.rows]
    return rows[0].cells if len(rows) == 1 else ()


def _is_another(sentence: str, text: str, counted: Sequence[int]) -> bool:
    """True if a sentence has one larger number, and the text none of those that were counted."""
    written = [number for number in _ANY_NUMBER.findall(sentence) if not is_year(number)]
    if len(written) != 1:
        return False
    said = written[0].replace(",", "")
    known = {number.replace(",", "") for number in _DIGITS.findall(text)}
    return said.isdigit() and known.isdisjoint(map(str, counted))


def _count(places: Places, arguments: str) -> tuple[int, set[str]] | None:
    """Returns the number that a query counted, and the words by which it chose its rows."""
    query = places.query
    if query is None or not _COUNTS.search(arguments):
        return None
    cells = _only_row(places)
    if len(cells) != 1 or not _WHOLE.fullmatch(cells[0]):
        return None

    names: set[str] = set()
    for compared in query.filters.values():
        if not compared.ranged:
            names.update(*map(words_of, compared.values))
    is_named = any(not word.isdigit() for word in names)
    return (int(cells[0]), names) if is_named else None
