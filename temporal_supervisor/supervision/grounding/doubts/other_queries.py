"""A finding's query beside others that were written for the same question: their results.

Each was written from the words of the question alone. `other_query_doubts` compares the result of
the finding's query with theirs: one that two of them have is believed, one that no other has is a
doubt. Example: 17 rows that meet a condition, where two other queries count 20 rows in all.
`other_result` returns the result of the others for an agent whose own query brought nothing.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import NamedTuple

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.grounding.doubts.inquiry import (
    PLAIN_NUMBER,
    AnsweredQuery,
    Inquiry,
)
from temporal_supervisor.supervision.grounding.rows.queries import sql_in
from temporal_supervisor.supervision.grounding.sources import Source

_VOTES = 2  # so many other queries have to return a finding's result
_ROWS = 50  # compared of one query: whoever lists more has chosen nothing
_COMMON = 0.5  # share of the values of two results, from which on they are one result
_NEARLY_ALL = 0.9  # of the values of two lists that are one
_SHARE = Decimal("0.005")  # by which numbers with decimals may differ: they may be rounded
_SHOWN_CHARS = 80  # of what a query returned


class _OtherQuery(NamedTuple):
    """Another query that found rows: its SQL in one line, and its result."""

    sql: str
    result: AnsweredQuery


def other_query_doubts(
    question: str,
    sources: Sequence[Source],
    others: Sequence[Source],
    first_call: str,
    finding: str = "",
) -> list[str]:
    """Returns a doubt if a finding's result has too few votes among the queries for its question.

    `sources` are the outputs of tools, and `first_call` has the arguments of the call that was made
    before any other query was known. `others` are outputs of the other queries. By the text of the
    `finding` the query is known that it rests on. Without that query there is no doubt.
    """
    query = _query_of(Inquiry(question, sources, finding))
    if query is None:
        return []
    if query.facts.nothing:
        return ["no row meets the conditions of the query"]

    answered = _answered(others)
    first = Inquiry(question, _outputs_of(first_call, sources)).queries[:1]
    written = [*(other.result for other in answered), *first]
    votes = [result for result in written if _is_one_result(query, result, finding)]
    if len(votes) >= _VOTES:
        return []

    differing = [other for other in answered if not _is_one_result(query, other.result, finding)]
    if not differing:
        return ["no other query for it returned the same"]
    other = _most_common(differing)
    return [f"{_returned(other)}, not {_values_in_words(query)}: {other.sql}"]


def other_result(others: Sequence[Source]) -> str:
    """Returns a sentence on the result that most other queries have; empty if none found any.

    Example: `another query for it returned 17: SELECT count(*) FROM finishes WHERE place = 1`.
    """
    answered = _answered(others)
    if not answered:
        return ""
    other = _most_common(answered)
    return f"{_returned(other)}: {other.sql}"


def _query_of(inquiry: Inquiry) -> AnsweredQuery | None:
    """Returns the query that the finding rests on, else the last one."""
    if inquiry.only_query is not None:
        return inquiry.only_query
    return inquiry.queries[-1] if inquiry.queries else None


def _outputs_of(call: str, sources: Sequence[Source]) -> list[Source]:
    return [source for source in sources if call and source.arguments == call]


def _answered(others: Sequence[Source]) -> list[_OtherQuery]:
    """Returns the other queries that found rows."""
    answered: list[_OtherQuery] = []
    for other in others:
        sql = one_line(sql_in(other.arguments), limits.LINE_BYTES)
        results = Inquiry("", [other]).queries
        # Small models write conditions that no row can meet, and do so in each query: two zeros
        # are no agreement.
        answered += [_OtherQuery(sql, each) for each in results if not each.facts.nothing]
    return answered


def _most_common(others: Sequence[_OtherQuery]) -> _OtherQuery:
    """Returns one with the result that most of them have; of several the first."""

    def votes(other: _OtherQuery) -> int:
        return sum(_is_one_result(other.result, each.result, "") for each in others)

    return max(others, key=votes)


def _is_one_result(query: AnsweredQuery, other: AnsweredQuery, finding: str) -> bool:
    """True if two queries have one result, also where one counts or adds up the other's rows.

    Of the query only cells that the finding has count, if there are some. Numbers are compared,
    and texts only if one of the results has no number.
    """
    if query.shape == other.shape or _sums_up(query, other) or _sums_up(other, query):
        return True
    all_values = _values(query)
    other_values = _values(other)
    # A finding may tell a few cells of a long list.
    if _common_share(_unique(all_values), _unique(other_values)) >= _NEARLY_ALL:
        return True

    in_finding = query.cells_in(finding)
    own_values = [value for value in all_values if not in_finding or value in in_finding]
    for are_numbers in (True, False):
        one = _of_kind(own_values, are_numbers=are_numbers)
        two = _of_kind(other_values, are_numbers=are_numbers)
        if one and two:
            return _common_share(one, two) >= _COMMON
    return False


def _sums_up(single: AnsweredQuery, rows: AnsweredQuery) -> bool:
    """True if the only value of one query is the number or the sum of the rows of another."""
    values = _values(single)
    if len(values) != 1 or rows.rows < 2:
        return False
    if _is_same(values[0], str(rows.rows)):
        return True
    return rows.total is not None and _is_same(values[0], str(rows.total))


def _values(query: AnsweredQuery) -> list[str]:
    rows = [row for table in query.output for row in table.rows[:_ROWS]]
    return [*filter(None, chain.from_iterable(row.cells for row in rows))]


def _of_kind(values: Sequence[str], *, are_numbers: bool) -> list[str]:
    return _unique(value for value in values if bool(PLAIN_NUMBER.fullmatch(value)) is are_numbers)


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _common_share(one: Sequence[str], two: Sequence[str]) -> float:
    common = [value for value in one if any(_is_same(value, each) for each in two)]
    return len(common) / max(len(one), len(two))


def _is_same(one: str, other: str) -> bool:
    """True for equal texts, and for equal numbers: with decimals they may have been rounded."""
    if not (PLAIN_NUMBER.fullmatch(one) and PLAIN_NUMBER.fullmatch(other)):
        return _plain(one) == _plain(other)
    first = Decimal(one)
    second = Decimal(other)
    is_whole = first == first.to_integral_value() and second == second.to_integral_value()
    if is_whole:
        return first == second
    return abs(first - second) <= _SHARE * max(abs(first), abs(second))


def _plain(value: str) -> str:
    return " ".join(re.findall(r"\w+", value.lower()))


def _returned(other: _OtherQuery) -> str:
    return f"another query for it returned {_values_in_words(other.result)}"


def _values_in_words(query: AnsweredQuery) -> str:
    return one_line(", ".join(_values(query)), _SHOWN_CHARS)
