"""The process that checks and runs SQL, so that a query can neither harm nor block its Worker.

`activities.bounded` calls `reply`, which opens the tables of a query in an engine and locks it
before it runs the query. The engine stays open for the next query over the same tables; other
tables get a new one, and so does a query that names the places of rows. The module imports only the
check: each process pays for its imports.
"""

from typing import Any

import duckdb

from activities.files.values import (
    ENGINE_ROW_PLACE,
    ROW_PLACE,
    ROW_PLACE_SQL,
    literal,
    quoted,
    value_text,
)
from activities.tools.sql.empty_result import conditions_met
from activities.tools.sql.sql_check import (
    Refused,
    check,
    columns_read,
    names_column,
    tables_read,
)
from activities.tools.sql.tied_rows import leaves_out_a_tie
from temporal_supervisor.supervision.base.json_object import JsonObject

_served: JsonObject = {}
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
    "temp_directory": "",
}


def _start(setup: JsonObject, *, numbers_rows: bool) -> None:
    """Opens the tables in `{tables: {name: path}, ...limits}`; the engine reads no other file.

    If it `numbers_rows`, each table has a column more: the place of a row in its file, from 1 on.
    """
    if _served:
        _served.pop("database").close()
        _served.clear()
    database = duckdb.connect(config=_CLOSED)
    # The bar of a query that takes two seconds would be written into the reply.
    database.execute("SET enable_progress_bar = false")
    paths = ", ".join(map(literal, setup["tables"].values()))
    database.execute(f"SET allowed_paths = [{paths}]")
    database.execute("SET enable_external_access = false")
    for name, path in setup["tables"].items():
        rows = f"SELECT * FROM read_parquet({literal(path)})"
        if numbers_rows:
            rows = _numbered_rows(path)
        database.execute(f"CREATE VIEW {quoted(name)} AS {rows}")
    database.execute(f"SET memory_limit = '{setup['memory']}B'")
    database.execute("SET lock_configuration = true")
    _served.update(database=database, tables=setup["tables"], numbers_rows=numbers_rows)


def _numbered_rows(path: str) -> str:
    """Returns a query for the rows of a file, each with its place in the column ROW_PLACE."""
    source = f"read_parquet({literal(path)}, {ENGINE_ROW_PLACE} = true)"
    place = f"{ROW_PLACE_SQL} AS {ROW_PLACE}"
    return f"SELECT * EXCLUDE ({ENGINE_ROW_PLACE}), {place} FROM {source}"


def reply(sql: str, setup: JsonObject) -> JsonObject:
    """Returns the answer to a query that passes the check, or an `error`.

    `rows` are texts, and `more` is True if some are left out. `read` names the tables that were
    read, `columns_read` their columns, None for all. `met` counts the rows that meet the conditions
    of a query that found nothing. `tied` is True if a row that LIMIT leaves out ties with the last
    one.
    """
    tables = list(setup["tables"])
    try:
        query = check(sql, tables)
    except Refused as refused:
        return {"error": str(refused)}

    numbers_rows = names_column(query, ROW_PLACE)
    if (_served.get("tables"), _served.get("numbers_rows")) != (setup["tables"], numbers_rows):
        _start(setup, numbers_rows=numbers_rows)

    most = setup["rows"]
    cell_chars = setup["cell"]
    cursor = _served["database"].cursor()
    try:
        statements = cursor.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            return {"error": "Only one SELECT statement is possible."}
        cursor.execute(statements[0])
        names = [column[0] for column in cursor.description or []]
        fetched = cursor.fetchmany(most + 1)
        rows = []
        for row in fetched[:most]:
            rows.append([value_text(value)[:cell_chars] for value in row])
        met = conditions_met(cursor, query) if _tells_of_no_row(fetched) else None
        tied = bool(fetched) and leaves_out_a_tie(cursor, query)
    except MemoryError:
        # Ends the process: the memory that it still holds would be missing for the next query.
        raise
    except (duckdb.Error, ValueError, OverflowError) as error:
        return {"error": str(error)}
    finally:
        cursor.close()

    return {
        "columns": names,
        "rows": rows,
        "more": len(fetched) > most,
        "read": tables_read(query, tables),
        "columns_read": columns_read(query),
        "met": met,
        "tied": tied,
    }


def _tells_of_no_row(fetched: list[tuple[Any, ...]]) -> bool:
    """True if a query returned nothing, or one row of counts and sums over nothing."""
    if len(fetched) > 1:
        return False
    return all(value is None or value == 0 for row in fetched for value in row)


def refusals(queries: list[str], tables: list[str], dialect: str) -> list[str]:
    """Returns, for each query, why it cannot run over these tables; an empty text if it can."""
    return [_refusal(sql, tables, dialect) for sql in queries]


def _refusal(sql: str, tables: list[str], dialect: str) -> str:
    try:
        check(sql, tables, dialect)
    except Refused as why:
        return str(why)
    return ""
