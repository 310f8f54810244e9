"""Doubts about the queries behind an answer: they may ask something else than the question does.

A query proves its figures, whatever it asks for. So the words of the question are compared with
what all queries together choose, compute and show. Whoever has read rows that can be compared may
have sorted or added them up, and whoever has read a text may know from there: then only values are
looked for that are nowhere at all.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from temporal_supervisor.supervision.grounding.asked.asked_and_read import AskedAndRead
from temporal_supervisor.supervision.grounding.asked.flags_left_out import flags_left_out
from temporal_supervisor.supervision.grounding.asked.methods_left_out import (
    methods_left_out,
    uses_a_method,
)
from temporal_supervisor.supervision.grounding.asked.named_rows import (
    named_row_alone,
    names_excluded,
)
from temporal_supervisor.supervision.grounding.asked.other_results import (
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
from temporal_supervisor.supervision.grounding.asked.values_added import (
    numbers_added,
    numbers_compared,
    texts_added,
)
from temporal_supervisor.supervision.grounding.asked.values_left_out import (
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
    asked = AskedAndRead(question, sources, told)
    if not asked.queries:
        return []
    is_long = len(question.split()) > _WORDS
    found = _doubts_of_methods(asked) if is_long else _doubts(asked)
    return list(dict.fromkeys(islice(found, _DOUBTS)))


def _doubts_of_methods(asked: AskedAndRead) -> Iterator[str]:
    if asked.has_other_texts:
        return
    yield from methods_left_out(asked)
    yield from texts_added(asked)
    # Beside a method that is used, a mean may belong to its explanation.
    if not uses_a_method(asked):
        yield from no_mean(asked)


def _doubts(asked: AskedAndRead) -> Iterator[str]:
    yield from numbers_left_out(asked)
    yield from names_left_out(asked)
    yield from names_excluded(asked)
    yield from numbers_added(asked)
    yield from numbers_compared(asked)
    yield from flags_left_out(asked)
    yield from notes_ignored(asked)
    if asked.has_other_texts:
        return
    yield from texts_added(asked)
    yield from named_row_alone(asked)
    yield from methods_left_out(asked)
    yield from other_end(asked)
    yield from total_row(asked)
    yield from other_kind(asked)
    yield from none_of_two(asked)
    yield from other_name(asked)
    yield from other_column(asked)
    yield from not_added_up(asked)
    if asked.can_be_compared:
        return
    yield from not_computed(asked)
    yield from no_count(asked)
    yield from not_chosen(asked)
