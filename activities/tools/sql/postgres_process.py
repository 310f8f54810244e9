"""The process that queries a PostgreSQL server, with an uncommitted connection for each request.

`activities.bounded` calls `describe` and `reply`. The connection string comes with each request,
because arguments of processes are visible to others; no error contains it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

from activities.files.values import value_text
from activities.tools.sql.sql_check import Refused, check, tables_read
from temporal_supervisor.supervision.base.json_object import JsonObject

Work = Callable[[asyncpg.Connection], Awaitable[JsonObject]]

_COLUMNS = 2000  # of all tables: more than a model reads
_VALUES = 20  # of a text column
_VALUE_CHARS = 60
_FORM = (
    "its connection string is not of the form postgresql://USER:PASSWORD@HOST/DATABASE, or a "
    "certificate that it needs is not there"
)
_DESCRIBE = f"""
SELECT
  CASE WHEN n.nspname = 'public' THEN '' ELSE quote_ident(n.nspname) || '.' END
    || quote_ident(c.relname) AS "table",
  greatest(c.reltuples, 0)::bigint AS rows,
  left(obj_description(c.oid, 'pg_class'), 500) AS about,
  quote_ident(a.attname) AS sql,
  format_type(a.atttypid, a.atttypmod) AS type,
  left(col_description(c.oid, a.attnum), 500) AS note,
  t.typcategory = 'S' AS is_text,
  s.n_distinct,
  (s.most_common_vals::text::text[])[1:{_VALUES}] AS common,
  s.histogram_bounds::text::text[] AS bounds
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname
  AND s.attname = a.attname AND s.inherited = (c.relkind = 'p')
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND NOT c.relispartition
  AND n.nspname !~ '^(pg_|information_schema$)'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT')
  AND n.nspname || c.relname !~ '[".]'
ORDER BY n.nspname <> 'public', n.nspname, c.relname, a.attnum LIMIT {_COLUMNS}
"""
_SUPERUSER = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"


def describe(url: str, times: JsonObject) -> JsonObject:
    """Returns the `tables` that the user may read, with the server's statistics, or an `error`."""

    async def work(connection: asyncpg.Connection) -> JsonObject:
        if await connection.fetchval(_SUPERUSER):
            problem = "its user is a superuser, who may do anything"
            return {"error": f"{problem}: name one that may only read the tables", "down": True}
        tables: dict[str, JsonObject] = {}
        for row in await connection.fetch(_DESCRIBE):
            new = {
                "name": row["table"],
                "about": row["about"] or "",
                "rows": f"about {row['rows']}",
                "columns": [],
                "notes": [],
            }
            table = tables.setdefault(row["table"], new)
            name = row["sql"].strip('"').replace('""', '"')
            described = {"name": name, "sql": row["sql"], "type": row["type"]}
            table["columns"].append({**described, **_statistics(row)})
            if row["note"]:
                table["notes"].append(f"{row['sql']}: {row['note']}")
        return {"tables": list(tables.values())}

    return asyncio.run(_connected(url, times, work))


def _statistics(row: Any) -> JsonObject:
    """Returns the `values` and the number of `more`, or the `range` of a column, where known."""
    common = [value[:_VALUE_CHARS] for value in row["common"] or []]
    bounds = [value[:_VALUE_CHARS] for value in row["bounds"] or []]
    if bounds and not row["is_text"]:
        return {"range": [bounds[0], bounds[-1]]}
    values = sorted(common) or bounds[:_VALUES]
    if not values:
        return {}
    distinct = row["n_distinct"]
    if distinct < 0:  # as a share of the rows
        distinct = -distinct * row["rows"]
    return {"values": values, "more": max(0, round(distinct) - len(values))}


def reply(
    url: str,
    times: JsonObject,
    sql: str,
    tables: list[str],
    bounds: JsonObject,
) -> JsonObject:
    """Returns the answer to a query that passes the check, or an `error`.

    `read` names the tables that the query reads, `more` is True if rows are left out.
    """
    try:
        query = check(sql, tables, "postgres")
    except Refused as refused:
        return {"error": str(refused)}
    # What was parsed, because the server may read what was written in another way.
    checked = query.sql(dialect="postgres", comments=False)
    most, chars = bounds["rows"], bounds["cell"]

    async def work(connection: asyncpg.Connection) -> JsonObject:
        statement = await connection.prepare(checked)  # exactly one
        cursor = await statement.cursor()
        fetched = await cursor.fetch(most + 1)
        names = [attribute.name for attribute in statement.get_attributes()]
        rows = [[value_text(value)[:chars] for value in row.values()] for row in fetched[:most]]
        return {"columns": names, "rows": rows, "more": len(fetched) > most}

    answer = asyncio.run(_connected(url, times, work))
    return {"read": tables_read(query, tables, "postgres"), **answer}


def _refusal(error: Exception) -> str:
    """Returns the reason for a failed connection, without the driver's own words."""
    if isinstance(error, asyncpg.PostgresError):
        return "the server refuses the connection"
    if isinstance(error, OSError):
        return "the server cannot be reached"
    return _FORM


async def _connected(url: str, times: JsonObject, work: Work) -> JsonObject:
    """Returns the result of `work` in a transaction that cannot write.

    The result has an `error` if it fails, and `down` if there was no connection.
    """
    try:
        connection = await asyncpg.connect(url, timeout=times["connect"], statement_cache_size=0)
    except Exception as error:
        # The driver's messages repeat parts of the connection string, so only the type is shown.
        return {"error": f"{_refusal(error)} ({type(error).__name__})", "down": True}
    try:
        # The server may fall silent from now on.
        async with asyncio.timeout(times["statement"] + times["connect"]):
            await connection.transaction(readonly=True).start()
            await connection.execute(
                f"""
                SET LOCAL statement_timeout = '{times["statement"]}s';
                SET LOCAL lock_timeout = '{times["lock"]}s';
                SET LOCAL search_path = '';
                SET LOCAL standard_conforming_strings = on
                """
            )
            await connection.set_type_codec(
                "interval",
                schema="pg_catalog",
                encoder=str,
                decoder=str,  # as the driver has them, months are days
                format="text",
            )
            return await work(connection)
    except asyncpg.QueryCanceledError:
        late = f"The query takes longer than {times['statement']} s"
        return {"error": f"{late}. Ask for less at once."}
    except asyncpg.PostgresError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"The query failed: {type(error).__name__}."}
    finally:
        with contextlib.suppress(Exception):
            await connection.close(timeout=1)  # ends the transaction: a notice of it is never sent
