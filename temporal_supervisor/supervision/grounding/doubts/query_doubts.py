"""Doubts about the queries behind an answer: they may ask something else than the question does.

A query proves its figures, whatever it asks for. So `query_doubts` reads the question and all
outputs of tools as an `Inquiry`, asks the rules in the tables below, one after the other, and
returns their sentences. An author who has read rows that can be compared may have sorted them or
added them up, and one who has read a text may have the answer from there: then fewer rules hold.

A new rule is a function of an inquiry, and a line in one of the tables.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

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
    other_column,
    other_end,
    other_kind,
    other_name,
    other_rows,
    total_row,
)
from temporal_supervisor.supervision.grounding.doubts.named_rows import (
    named_row_alone,
    names_excluded,
)
from temporal_supervisor.supervision.grounding.doubts.other_periods import other_period
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

Rule: TypeAlias = Callable[[Inquiry], Iterator[str]]
"""Yields a sentence for each doubt."""

_ALWAYS: tuple[Rule, ...] = (
    numbers_left_out,
    names_left_out,
    names_excluded,
    numbers_added,
    numbers_compared,
    flags_left_out,
    other_rows,
    sorted_by_letters,
    other_period,
)
"""Rules that hold whatever else was read: about values that are nowhere, or misread."""

_WITHOUT_OTHER_TEXTS: tuple[Rule, ...] = (
    texts_added,
    named_row_alone,
    methods_left_out,
    other_end,
    sorted_against_the_list,
    total_row,
    other_kind,
    none_of_two,
    other_name,
    other_column,
    not_added_up,
)
"""Rules that hold if all that was read are queries and lists of tables."""

_WITHOUT_COMPARABLE_ROWS: tuple[Rule, ...] = (
    not_computed,
    no_count,
    not_chosen,
)
"""Further ones, if nobody could have sorted, added up or counted the rows without a query."""

_DOUBTS = 5  # of one finding
_WORDS = 40
"""Longer questions explain thresholds, which no query has to name: only their methods count."""


def query_doubts(question: str, sources: Sequence[Source], finding: str = "") -> list[str]:
    """Returns a sentence for each part of a question that no query behind its answer asks for.

    `sources` are the outputs of tools, and the brief. The text of the `finding` tells which query
    it rests on. Without a query that found rows there are no doubts, and about a
    question of many words only those on its methods.
    """
    inquiry = Inquiry(question, sources, finding)
    if not inquiry.queries:
        return []
    is_long = len(question.split()) > _WORDS
    doubts = _doubts_of_methods(inquiry) if is_long else _doubts(inquiry)
    return list(dict.fromkeys(islice(doubts, _DOUBTS)))


def _doubts(inquiry: Inquiry) -> Iterator[str]:
    rules = [*_ALWAYS]
    if not inquiry.has_other_texts:
        rules += _WITHOUT_OTHER_TEXTS
        if not inquiry.can_be_compared:
            rules += _WITHOUT_COMPARABLE_ROWS
    return chain.from_iterable(rule(inquiry) for rule in rules)


def _doubts_of_methods(inquiry: Inquiry) -> Iterator[str]:
    if inquiry.has_other_texts:
        return
    yield from methods_left_out(inquiry)
    yield from texts_added(inquiry)
    # Beside a method that is used, a mean may belong to its explanation.
    if not uses_a_method(inquiry):
        yield from no_mean(inquiry)
