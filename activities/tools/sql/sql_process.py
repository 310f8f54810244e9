"""The process that checks and runs SQL, so that a query can neither harm nor block its Worker.

`activities.bounded` calls `reply`, which opens the tables and locks the engine at its first query.
Imports only the check: each process pays for what it imports.
"""

from typing import Any

import duckdb

from activities.files.values import literal, quoted, shown
from activities.tools.sql.sql_check import Refused, check, columns_read, tables_read

Json = dict[str, Any]

_served: Json = {}
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
    "temp_directory": "",
}


def _start(setup: Json) -> None:
    """Opens the tables of `{tables: {name: path}, ...limits}`; the engine can read these files and no others."""
    database = duckdb.connect(config=_CLOSED)
    database.execute("SET enable_progress_bar = false")  # it would stand in the reply of a query of two seconds
    paths = ", ".join(map(literal, setup["tables"].values()))
    database.execute(f"SET allowed_paths = [{paths}]")
    database.execute("SET enable_external_access = false")
    for name, path in setup["tables"].items():
        database.execute(f"CREATE VIEW {quoted(name)} AS SELECT * FROM read_parquet({literal(path)})")
    database.execute(f"SET memory_limit = '{setup['memory']}B'")
    database.execute("SET lock_configuration = true")
    _served["database"] = database


def reply(sql: str, setup: Json) -> Json:
    """Returns the answer to a query that passes the check; else `error`.

    It has texts, if there is `more`, the tables that it `read`, and the `columns_read`, null for all.
    """
    if not _served:
        _start(setup)
    tables, rows = list(setup["tables"]), setup["rows"]
    try:
        query = check(sql, tables)
    except Refused as refused:
        return {"error": str(refused)}
    cursor = _served["database"].cursor()
    try:
        statements = cursor.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            return {"error": "Only one SELECT statement is possible."}
        cursor.execute(statements[0])
        names = [column[0] for column in cursor.description or []]
        fetched = cursor.fetchmany(rows + 1)
        shown_rows = [[shown(value)[: setup["cell"]] for value in row] for row in fetched[:rows]]
    except MemoryError:
        return {"error": "The query needs too much memory. Ask for less at once."}
    except (duckdb.Error, ValueError, OverflowError) as error:
        return {"error": str(error)}
    finally:
        cursor.close()
    return {
        "columns": names,
        "rows": shown_rows,
        "more": len(fetched) > rows,
        "read": tables_read(query, tables),
        "columns_read": columns_read(query),
    }
