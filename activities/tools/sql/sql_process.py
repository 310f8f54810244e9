"""The process that checks and runs SQL, so that a query can neither harm nor block its Worker.

`activities.bounded` calls these functions: `start` loads the tables and locks the engine, `reply` answers a query.
Imports only the check: each process pays for what it imports.
"""

from typing import Any

import duckdb

from activities.files.values import literal, quoted, shown
from activities.tools.sql.sql_check import Refused, check, tables_read

Json = dict[str, Any]

_served: Json = {}
CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
    "temp_directory": "",
}


def load(tables: dict[str, str], memory: int) -> duckdb.DuckDBPyConnection:
    """Returns a connection to views of Parquet files; the engine can read these files and no others."""
    database = duckdb.connect(config=CLOSED)
    database.execute("SET enable_progress_bar = false")  # it would stand in the reply of a query of two seconds
    paths = ", ".join(map(literal, tables.values()))
    database.execute(f"SET allowed_paths = [{paths}]")
    database.execute("SET enable_external_access = false")
    for name, path in tables.items():
        database.execute(f"CREATE VIEW {quoted(name)} AS SELECT * FROM read_parquet({literal(path)})")
    database.execute(f"SET memory_limit = '{memory}B'")
    database.execute("SET lock_configuration = true")
    return database


def start(setup: Json) -> None:
    """Opens the tables of `{tables: {name: path}, ...limits}`, to be called first."""
    _served.update(setup, database=load(setup["tables"], setup["memory"]))


def reply(sql: str) -> Json:
    """Returns the answer to a query that passes the check, with the tables that it `read`; else `error`."""
    tables = list(_served["tables"])
    try:
        query = check(sql, tables)
    except Refused as refused:
        return {"error": str(refused)}
    answered = answer(_served["database"], sql, _served["rows"], _served["cell"])
    return {**answered, "read": tables_read(query, tables)}


def answer(database: duckdb.DuckDBPyConnection, sql: str, rows: int, cell: int) -> Json:
    """Returns at most `rows` rows of the one SELECT in `sql`, as text; `more` is True if there are others."""
    cursor = database.cursor()
    try:
        statements = cursor.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            return {"error": "Only one SELECT statement is possible."}
        cursor.execute(statements[0])
        names = [column[0] for column in cursor.description or []]
        fetched = cursor.fetchmany(rows + 1)
        return {
            "columns": names,
            "rows": [[shown(value)[:cell] for value in row] for row in fetched[:rows]],
            "more": len(fetched) > rows,
        }
    except MemoryError:
        return {"error": "The query needs too much memory. Ask for less at once."}
    except (duckdb.Error, ValueError, OverflowError) as error:
        return {"error": str(error)}
    finally:
        cursor.close()
