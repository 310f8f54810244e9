"""Doubts about the queries behind an answer: they may ask something else than the question does.

A query proves its figures, whatever it asks for. So the words of the question are compared with
what all queries together choose, compute and show. Whoever has read rows that can be compared may
have sorted or added them up, and whoever has read a text may know from there: then only values are
looked for that are nowhere at all.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from temporal_supervisor.supervision.grounding.doubts.flags_left_out import flags_left_out
from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry
from temporal_supervisor.supervision.grounding.doubts.methods_left_out import (
    methods_left_out,
    uses_a_method,
)
from temporal_supervisor.supervision.grounding.doubts.mismatched_results import (
    no_count,
    no_mean,
    none_of_two,
    not_added_up,
    not_chosen,
    not_computed,
    notes_ignored,
    other_column,
    other_end,
    other_kind,
    other_name,
    total_row,
)
from temporal_supervisor.supervision.grounding.doubts.named_rows import (
    named_row_alone,
    names_excluded,
)
from temporal_supervisor.supervision.grounding.doubts.row_order import (
    sorted_against_the_list,
    sorted_by_letters,
)
from temporal_supervisor.supervision.grounding.doubts.values_added import (
    numbers_added,
    numbers_compared,
    texts_added,
)
from temporal_supervisor.supervision.grounding.doubts.values_left_out import (
    names_left_out,
    numbers_left_out,
)
from temporal_supervisor.supervision.grounding.sources import Source

_DOUBTS = 5  # of one finding
_WORDS = 40
"""Longer questions explain thresholds, which no query has to name: only their methods count."""


def query_doubts(question: str, sources: Sequence[Source], told: str = "") -> list[str]:
    """Returns a sentence for each part of a question that no query behind its answer asks for.

    `sources` are the outputs of tools, and the brief; `told` is the finding, by which the query
    that it rests on is known. Without a query that found rows there are no doubts, and about a
    question of many words only those on its methods.
    """
    inquiry = Inquiry(question, sources, told)
    if not inquiry.queries:
        return []
    is_long = len(question.split()) > _WORDS
    found = _doubts_of_methods(inquiry) if is_long else _doubts(inquiry)
    return list(dict.fromkeys(islice(found, _DOUBTS)))


def _doubts_of_methods(inquiry: Inquiry) -> Iterator[str]:
    if inquiry.has_other_texts:
        return
    yield from methods_left_out(inquiry)
    yield from texts_added(inquiry)
    # Beside a method that is used, a mean may belong to its explanation.
    if not uses_a_method(inquiry):
        yield from no_mean(inquiry)


def _doubts(inquiry: Inquiry) -> Iterator[str]:
    yield from numbers_left_out(inquiry)
    yield from names_left_out(inquiry)
    yield from names_excluded(inquiry)
    yield from numbers_added(inquiry)
    yield from numbers_compared(inquiry)
    yield from flags_left_out(inquiry)
    yield from notes_ignored(inquiry)
    yield from sorted_by_letters(inquiry)
    if inquiry.has_other_texts:
        return
    yield from texts_added(inquiry)
    yield from named_row_alone(inquiry)
    yield from methods_left_out(inquiry)
    yield from other_end(inquiry)
    yield from sorted_against_the_list(inquiry)
    yield from total_row(inquiry)
    yield from other_kind(inquiry)
    yield from none_of_two(inquiry)
    yield from other_name(inquiry)
    yield from other_column(inquiry)
    yield from not_added_up(inquiry)
    if inquiry.can_be_compared:
        return
    yield from not_computed(inquiry)
    yield from no_count(inquiry)
    yield from not_chosen(inquiry)
