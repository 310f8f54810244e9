"""The SQL that a model may run: one SELECT over the team's tables. Misuse is explained, not only refused.

This check gives good messages; the process that runs the query (`sql_process`) holds without it.
"""

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from activities.tools.tool import ToolMisuse
from supervision import limits
from supervision.text import one_line, quoted

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of each statement that it only half understands

_FORBIDDEN = (
    exp.DDL,  # CREATE, and INSERT, which sqlglot counts to it
    exp.DML,
    exp.Into,
    exp.Drop,
    exp.Alter,
    exp.Attach,
    exp.Detach,
    exp.Pragma,
    exp.Set,
    exp.Use,
    exp.Command,
    exp.Copy,
    exp.Lock,
)
_ROW_SOURCES = (exp.GenerateSeries, exp.Unnest, exp.Values)  # functions that may stand after FROM
_OUTSIDE = re.compile(
    r"^(read_|load_|pragma_|duckdb_|pg_|query|sleep)|current_setting|getenv|getvariable|nextval|currval|setseed"
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(sql: str, tables: list[str]) -> exp.Expr:
    """Returns the parsed query. Raises ToolMisuse unless it is one SELECT (or WITH, UNION) over `tables`."""
    try:
        parsed = sqlglot.parse(sql, read="duckdb")
    except RecursionError:
        raise ToolMisuse("the query is nested too deeply: simplify it") from None
    except SqlglotError as error:
        raise ToolMisuse(f"the query is not valid SQL: {one_line(str(error), limits.COMPLAINT_BYTES)}") from error
    statements = [part for part in parsed if part is not None and not isinstance(part, exp.Semicolon)]
    if len(statements) != 1:
        raise ToolMisuse(f"send exactly one SELECT statement, not {len(statements)}")
    query = statements[0].unnest()
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise ToolMisuse(f"only SELECT is possible, not {statements[0].key.upper()}")
    if query.find(exp.Pivot):  # the engine runs a PIVOT as several statements
        raise ToolMisuse("PIVOT is not available: use for example sum(x) FILTER (WHERE year = 2001) per column")
    for node in query.walk():
        _check_node(node)
    names = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    if odd := [name for name in names if not _PLAIN_NAME.fullmatch(name)]:
        raise ToolMisuse(f"'{odd[0]}' cannot name a WITH clause: use letters, digits and underscores")
    for table in query.find_all(exp.Table):
        _check_table(table, names | {name.lower() for name in tables})
    return query


def tables_read(query: exp.Expr, tables: list[str]) -> list[str]:
    """Returns those of `tables` that `query` reads."""
    read = {table.name.lower() for table in query.find_all(exp.Table)}
    return [name for name in tables if name.lower() in read]


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, _FORBIDDEN):
        raise ToolMisuse(f"{node.key.upper()} is not possible: data can only be read")
    if isinstance(node, exp.Parameter | exp.Placeholder):
        raise ToolMisuse("parameters are not possible: write the values into the query")
    if isinstance(node, exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if _OUTSIDE.search(name):
            raise ToolMisuse(f"the function {name} is not available")


def _check_table(table: exp.Table, known: set[str]) -> None:
    if isinstance(table.this, _ROW_SOURCES):
        return
    if not isinstance(table.this, exp.Identifier):
        raise ToolMisuse("functions that read files or settings are not available: use the tables")
    if table.catalog or table.db.lower() not in ("", "main") or table.name.lower() not in known:
        raise ToolMisuse(f"there is no table {quoted(table.sql(dialect='duckdb'))}")
