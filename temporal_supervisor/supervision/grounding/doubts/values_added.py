"""Texts and numbers by which a query chooses rows, and that nobody has named.

Example: `WHERE branch = 'Station' AND visitors = 19020` for "How many visitors had the Station?"
Only an equality counts: a range may round, and a threshold may be a rule of the trade.
"""

from collections.abc import Iterator

from temporal_supervisor.supervision.base import spoken_words
from temporal_supervisor.supervision.base.spoken_words import stems
from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.grounding.doubts import question_patterns as patterns
from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry
from temporal_supervisor.supervision.grounding.doubts.query_shape import plain_number
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import is_year

_SHORT_WORD = 2  # letters of a word that tells nothing, or of a code
_SMALL = 100
"""Whole numbers up to this are ranks, months, percents or codes that a question puts into words."""


def texts_added(inquiry: Inquiry) -> Iterator[str]:
    """Yields the texts that rows have to equal, if none of their words is in question or rows."""
    question = inquiry.question
    # An adjective may mean a country, and "did not" a text such as `no result`.
    if patterns.adjectives_in(question) or patterns.NOT.search(question):
        return

    as_written = spoken_words.words_of(question)
    for query in inquiry.queries:
        shown = words_of("\n".join(inquiry.texts_beside(query)))
        known = stems([*words_of(question), *shown])
        for text in query.shape.chosen:
            words = words_of(text)
            # One word may be a code, such as `CA` for California, and initials may be named alone.
            initials = "".join(word[0] for word in words)
            long_words = [word for word in words if len(word) > _SHORT_WORD]
            if len(long_words) < 2 or initials in as_written:
                continue
            if known.isdisjoint(stems(long_words)):
                yield f"the query has a condition on {quoted(text)}, which nobody has named"


def numbers_compared(inquiry: Inquiry) -> Iterator[str]:
    """Yields two numbers that a query compares with each other: one was meant to be a column."""
    for shape in inquiry.shapes:
        numbers = shape.compared_numbers
        if numbers:
            yield f"the query compares the number {numbers[0]} with {numbers[1]}, and no column"


def numbers_added(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about the numbers of conditions that neither question nor data name."""
    named = {plain_number(number) for number in patterns.numbers_in(inquiry.question)}
    named |= _ends_asked_for(inquiry)
    for query in inquiry.queries:
        known = named | inquiry.numbers_beside(query)
        for number in query.chosen_numbers:
            if number not in known and not _is_common(number):
                yield f"the query has a condition on {number}, which the question does not name"


def _ends_asked_for(inquiry: Inquiry) -> set[str]:
    """Returns the ends of listed columns, where a question may ask for the highest or lowest."""
    if not patterns.may_take_an_end(inquiry.question):
        return set()
    ends = [end for column in inquiry.columns if column.ends for end in column.ends]
    return {plain_number(end) for end in ends}


def _is_common(number: str) -> bool:
    """True for small whole numbers and for years."""
    if is_year(number):
        return True
    return number.isdigit() and int(number) <= _SMALL
