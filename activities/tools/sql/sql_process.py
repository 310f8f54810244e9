"""The process that checks and runs SQL, so that a query can neither harm nor block its Worker.

`activities.bounded` calls these functions: `start` loads the tables and locks the engine, `reply` answers a query.
Imports only the check: each process pays for what it imports.
"""

import glob
import os
import tempfile
from typing import Any

import duckdb

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
    """Returns a connection to the tables, in a file that is opened read-only and already deleted."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "tables.duckdb")
        with duckdb.connect(file, config=CLOSED) as writer:
            for name, path in tables.items():
                writer.execute(f'CREATE TABLE "{name}" AS SELECT * FROM read_csv(?)', [glob.escape(path)])
        doors = {"enable_external_access": "false", "memory_limit": f"{memory}B", "lock_configuration": "true"}
        reader = duckdb.connect(file, read_only=True, config=CLOSED | doors)
        reader.execute("SELECT 1").fetchall()
        return reader


def show(value: object) -> str:
    """Returns one value as text: dates in ISO form, floats without binary noise."""
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.15g}"
    return str(value)


def describe(database: duckdb.DuckDBPyConnection, name: str, most: int) -> Json:
    """Returns columns and number of rows of a table, with each column's distinct texts or its range."""
    columns = []
    for column, kind, *_ in database.execute(f'DESCRIBE "{name}"').fetchall():
        quoted = '"' + column.replace('"', '""') + '"'
        entry: Json = {"name": column, "type": kind}
        if kind == "VARCHAR":
            values = database.execute(
                f'SELECT DISTINCT {quoted} FROM "{name}" WHERE {quoted} IS NOT NULL ORDER BY 1'
            ).fetchall()
            entry["values"] = [show(value) for (value,) in values[:most]]
            entry["more"] = max(0, len(values) - most)
        else:
            low_high = database.execute(f'SELECT min({quoted}), max({quoted}) FROM "{name}"').fetchone() or ()
            entry["range"] = [show(value) for value in low_high]
        columns.append(entry)
    (rows,) = database.execute(f'SELECT count(*) FROM "{name}"').fetchone() or (0,)
    return {"name": name, "columns": columns, "rows": rows}


def start(setup: Json) -> list[Json]:
    """Loads the tables of `{tables: {name: path}, ...limits}`, to be called first. Returns what each holds."""
    database = load(setup["tables"], setup["memory"])
    _served.update(setup, database=database)
    return [describe(database, name, setup["values"]) for name in setup["tables"]]


def reply(sql: str) -> Json:
    """Returns the answer to a query that passes the check, with the tables that it `read`; else `error`."""
    tables = list(_served["tables"])
    try:
        query = check(sql, tables, _served["joins"])
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
            "rows": [[show(value)[:cell] for value in row] for row in fetched[:rows]],
            "more": len(fetched) > rows,
        }
    except MemoryError:
        return {"error": "The query needs too much memory. Ask for less at once."}
    except (duckdb.Error, ValueError, OverflowError) as error:
        return {"error": str(error)}
    finally:
        cursor.close()
