"""Why a query returned nothing: the rows that its tables have, and how many meet each of its conditions.

Example: `SELECT name FROM staff WHERE age > 90 AND city = 'Riga'` is counted by
`SELECT count(*), count(CASE WHEN age > 90 THEN 1 END), ... FROM staff`.
Runs in the engine's process, so it imports little.
"""

import threading
from copy import deepcopy
from typing import Any, NamedTuple

import duckdb
from sqlglot import exp

_CONDITIONS = 6  # counted of one query
_SECONDS = 1.0  # an explanation that takes longer is not worth the wait


class Counting(NamedTuple):
    """A query that counts the rows before its conditions and those that meet each, with the columns of each."""

    sql: str
    columns: list[list[str]]


def counting_query(query: exp.Expr) -> Counting | None:
    """Returns the query that counts the conditions of another one; None where WHERE chooses no rows of it."""
    if not isinstance(query, exp.Select):
        return None
    where = query.args.get("where")
    if where is None:
        return None

    joined = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    conditions = [*joined][:_CONDITIONS]
    counted = [exp.Count(this=exp.Star())]
    for condition in conditions:
        met = exp.Case().when(condition.copy(), exp.Literal.number(1))
        counted.append(exp.Count(this=met))

    counting = exp.Select(expressions=counted)
    for part in ("with_", "from_", "joins", "laterals"):
        kept = query.args.get(part)
        if kept:
            counting.set(part, deepcopy(kept))
    return Counting(counting.sql(dialect="duckdb"), [_columns_of(condition) for condition in conditions])


def _columns_of(condition: exp.Expr) -> list[str]:
    """Returns the names of a condition's columns, without those of its subqueries."""
    here = condition.walk(prune=lambda node: isinstance(node, exp.Query))
    names = [node.this.sql(dialect="duckdb") for node in here if isinstance(node, exp.Column)]
    return list(dict.fromkeys(names))


def conditions_met(cursor: duckdb.DuckDBPyConnection, query: exp.Expr) -> dict[str, Any] | None:
    """Returns how many rows met the conditions of a query: `rows` before them, and each one `alone`.

    Of each condition it has the columns and the rows. Returns None where they cannot be counted
    within a second.
    """
    counting = counting_query(query)
    if counting is None:
        return None

    watch = threading.Timer(_SECONDS, cursor.interrupt)
    watch.start()
    try:
        found = cursor.execute(counting.sql).fetchone()
    except duckdb.Error:
        return None
    finally:
        watch.cancel()
    if found is None:
        return None
    return {"rows": found[0], "alone": [*zip(counting.columns, found[1:], strict=True)]}
