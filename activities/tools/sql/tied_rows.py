"""Rows that LIMIT leaves out although they tie with the last row that it returns.

Example: `SELECT name FROM staff ORDER BY age DESC LIMIT 1`, where two people are the oldest. Runs
in the engine's process, so it imports little.
"""

from copy import deepcopy

import duckdb
from sqlglot import exp

from activities.tools.sql.own_questions import answer

_MOST_ROWS = 20  # of a LIMIT: who asks for more looks at a part of the rows, not at the first


def leaves_out_a_tie(cursor: duckdb.DuckDBPyConnection, query: exp.Expr) -> bool:
    """True if the first row that LIMIT leaves out equals the last one shown in all sort keys.

    False if the check takes too long.
    """
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        return False
    limit = _limit_of(query)
    if limit is None:
        return False

    keys = _sort_keys(query)
    if keys is None:
        return False

    with_keys = _with_keys(query, keys, limit)
    found = answer(cursor, with_keys.sql(dialect="duckdb"))
    return len(found) == 2 and found[0] == found[1]


def _limit_of(query: exp.Select) -> int | None:
    """Returns the LIMIT of a query; None without one, and with an OFFSET."""
    limit = query.args.get("limit")
    if not isinstance(limit, exp.Limit) or query.args.get("offset"):
        return None

    number = limit.expression
    if not isinstance(number, exp.Literal) or not number.is_int:
        return None
    rows = int(number.this)
    return rows if 1 <= rows <= _MOST_ROWS else None


def _sort_keys(query: exp.Select) -> list[exp.Expr] | None:
    """Returns the sort keys of a query, None without any; a number is replaced by its column."""
    order = query.args.get("order")
    if not isinstance(order, exp.Order):
        return None

    keys = []
    for ordered in order.expressions:
        key = ordered.this
        if isinstance(key, exp.Literal) and key.is_int:
            place = int(key.this) - 1
            if place >= len(query.selects):
                return None
            key = query.selects[place].unalias()
        keys.append(key)
    return keys


def _with_keys(query: exp.Select, keys: list[exp.Expr], limit: int) -> exp.Expr:
    """Returns a query for the keys of the last row that LIMIT shows and of the next one."""
    wider = deepcopy(query)
    names = [f"tied_key_{number}" for number in range(len(keys))]
    for name, key in zip(names, keys, strict=True):
        wider.select(exp.alias_(deepcopy(key), name), copy=False)
    wider.limit(2, copy=False)
    wider.offset(limit - 1, copy=False)
    return exp.select(*names).from_(wider.subquery("wider"))
