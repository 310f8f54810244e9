"""Conditions of a query that found nothing: how many rows of its tables meet each of them.

Example: `SELECT name FROM staff WHERE age > 90 AND city = 'Riga'` is counted by
`SELECT count(*), count(CASE WHEN age > 90 AND city = 'Riga' THEN 1 END), ... FROM staff`.
Runs in the engine's process, so it imports little.
"""

from copy import deepcopy
from typing import Any, NamedTuple

import duckdb
from sqlglot import exp

from activities.tools.sql.own_questions import answer

_CONDITIONS = 6  # counted of one query


class Counting(NamedTuple):
    """A query that counts all rows, those that meet all conditions, and those that meet each one.

    `columns` has the columns of each condition.
    """

    sql: str
    columns: list[list[str]]


def counting_query(query: exp.Expr) -> Counting | None:
    """Returns a query that counts the conditions of `query`; None if it has no WHERE."""
    if not isinstance(query, exp.Select):
        return None
    where = query.args.get("where")
    if where is None:
        return None

    joined = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    conditions = [*joined][:_CONDITIONS]
    counted = [exp.Count(this=exp.Star())]
    for condition in (where.this, *conditions):
        met = exp.Case().when(condition.copy(), exp.Literal.number(1))
        counted.append(exp.Count(this=met))

    counting = exp.Select(expressions=counted)
    for part in ("with_", "from_", "joins", "laterals"):
        kept = query.args.get(part)
        if kept:
            counting.set(part, deepcopy(kept))
    columns = [_columns_of(condition) for condition in conditions]
    return Counting(counting.sql(dialect="duckdb"), columns)


def _columns_of(condition: exp.Expr) -> list[str]:
    """Returns the names of a condition's columns, without those of its subqueries."""
    here = condition.walk(prune=lambda node: isinstance(node, exp.Query))
    names = [node.this.sql(dialect="duckdb") for node in here if isinstance(node, exp.Column)]
    return list(dict.fromkeys(names))


def conditions_met(cursor: duckdb.DuckDBPyConnection, query: exp.Expr) -> dict[str, Any] | None:
    """Returns the number of `rows`, of those that meet all conditions `together`, or one `alone`.

    `alone` has the columns of each condition with its number of rows. Returns None if the rows
    cannot be counted within a second.
    """
    counting = counting_query(query)
    if counting is None:
        return None

    found = answer(cursor, counting.sql)
    if not found:
        return None
    rows, together, *alone = found[0]
    conditions = [*zip(counting.columns, alone, strict=True)]
    return {"rows": rows, "together": together, "alone": conditions}
