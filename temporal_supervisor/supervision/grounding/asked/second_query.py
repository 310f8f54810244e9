"""A question's query and another one that was written for it, compared by what they return.

Both come from the words of the question alone. Where they return different things, at least one of
them asks for something else. Example: 17 rows that meet a condition beside 20 rows in all.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.grounding.asked.asked_and_read import (
    AnsweredQuery,
    AskedAndRead,
)
from temporal_supervisor.supervision.grounding.rows.queries import sql_in
from temporal_supervisor.supervision.grounding.sources import Source

_ROWS = 50
"""So many first rows are compared: whoever lists more has not chosen."""
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_SHARE = Decimal("0.005")  # by which numbers with decimals may differ: they may be rounded
_SHOWN_CHARS = 80  # of what a query returned


def second_query_doubts(
    question: str,
    sources: Sequence[Source],
    second: Source,
    told: str = "",
) -> list[str]:
    """Returns a sentence if the second query for a question returned something else.

    `sources` are the outputs of tools, `second` is that of the query written once more, `told` is
    the finding, by which the query that it rests on is known. Without rows of both there is no
    doubt.
    """
    others = AskedAndRead(question, [second]).queries
    first = _first_query(AskedAndRead(question, sources, told))
    if first is None or not others:
        return []

    other = others[0]
    if _is_one_result(first, other):
        return []
    return [f"{_returned(other)}, not {_shown(first)}: {_sql(second)}"]


def second_result(second: Source) -> str:
    """Returns a sentence on the rows of the second query, with the query; empty without any.

    Example: `another query for it returned 17: SELECT count(*) FROM finishes WHERE place = 1`.
    """
    others = AskedAndRead("", [second]).queries
    return f"{_returned(others[0])}: {_sql(second)}" if others else ""


def _returned(other: AnsweredQuery) -> str:
    return f"another query for it returned {_shown(other)}"


def _sql(second: Source) -> str:
    return one_line(sql_in(second.arguments), limits.LINE_BYTES)


def _first_query(asked: AskedAndRead) -> AnsweredQuery | None:
    """Returns the query that the finding rests on, else the last one."""
    if asked.only_query is not None:
        return asked.only_query
    return asked.queries[-1] if asked.queries else None


def _is_one_result(first: AnsweredQuery, other: AnsweredQuery) -> bool:
    """True if both show one thing: a value in common, or one counts or adds up the other's rows."""
    if any(_is_same(one, two) for one in _values(first) for two in _values(other)):
        return True
    return _sums_up(first, other) or _sums_up(other, first)


def _sums_up(single: AnsweredQuery, rows: AnsweredQuery) -> bool:
    values = list(_values(single))
    if len(values) != 1 or rows.rows < 2:
        return False
    if _is_same(values[0], str(rows.rows)):
        return True
    return rows.total is not None and _is_same(values[0], str(rows.total))


def _values(query: AnsweredQuery) -> Iterator[str]:
    for table in query.output:
        for row in table.rows[:_ROWS]:
            yield from filter(None, row.cells)


def _is_same(one: str, other: str) -> bool:
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return _plain(one) == _plain(other)
    first, second = Decimal(one), Decimal(other)
    is_whole = first == first.to_integral_value() and second == second.to_integral_value()
    if is_whole:
        return first == second
    return abs(first - second) <= _SHARE * max(abs(first), abs(second))


def _plain(value: str) -> str:
    return " ".join(re.findall(r"\w+", value.lower()))


def _shown(query: AnsweredQuery) -> str:
    return one_line(", ".join(_values(query)), _SHOWN_CHARS)
