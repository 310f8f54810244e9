"""The check of a model's SQL: one SELECT over the given tables. What is refused is explained.

The check exists for its messages; the engine's own locks (`sql_process`) hold without it. It runs in that process, too,
under its time limit: the parser needs exponential time for some texts. Imports little: that process starts often.
"""

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from supervision.base import limits
from supervision.base.text import one_line, quoted

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
_CONDITIONS = (TokenType.ON, TokenType.USING)
_WITHOUT_CONDITION = ("CROSS", "NATURAL", "POSITIONAL")


class Refused(Exception):
    """A statement that is not run; the message says what to do instead."""


def check(sql: str, tables: list[str], joins: int) -> exp.Expr:
    """Returns the parsed query. Raises Refused unless it is one SELECT (or WITH, UNION) over `tables`.

    At most `joins` joins, each with its condition: without one the parser takes twice as long for each further join.
    """
    try:
        _check_joins(sqlglot.tokenize(sql, read="duckdb"), joins)
        parsed = sqlglot.parse(sql, read="duckdb")
    except RecursionError:
        raise Refused("The query is nested too deeply. Simplify it.") from None
    except SqlglotError as error:
        raise Refused(f"The query is not valid SQL{_where(error)}") from error
    statements = [part for part in parsed if part is not None and not isinstance(part, exp.Semicolon)]
    if len(statements) != 1:
        raise Refused(f"Send exactly one SELECT statement, not {len(statements)}.")
    query = statements[0].unnest()
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise Refused(f"Only SELECT is possible, not {statements[0].key.upper()}.")
    if query.find(exp.Pivot):  # the engine runs a PIVOT as several statements
        raise Refused("PIVOT is not available. Write one column for each value: sum(x) FILTER (WHERE year = 2001).")
    for node in query.walk():
        _check_node(node)
    names = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    if odd := [name for name in names if not _PLAIN_NAME.fullmatch(name)]:
        raise Refused(f"'{odd[0]}' cannot name a WITH clause. Use letters, digits and underscores.")
    for table in query.find_all(exp.Table):
        _check_table(table, names | {name.lower() for name in tables})
    return query


def _where(error: SqlglotError) -> str:
    """Returns the place and the reason of an error. The parser's own message marks the place by colours."""
    for found in getattr(error, "errors", []):
        reason = one_line(found["description"].partition(" but got <Token")[0], limits.SENTENCE_BYTES)
        return f" near {quoted(found['highlight'])} (line {found['line']}, column {found['col']}): {reason}"
    return f": {one_line(str(error), limits.SENTENCE_BYTES)}"


def tables_read(query: exp.Expr, tables: list[str]) -> list[str]:
    """Returns those of `tables` that `query` reads."""
    read = {table.name.lower() for table in query.find_all(exp.Table)}
    return [name for name in tables if name.lower() in read]


def _check_joins(tokens: list[Token], joins: int) -> None:
    """Linear in the text, unlike the parser."""
    positions = [i for i, token in enumerate(tokens) if token.token_type is TokenType.JOIN]
    if len(positions) > joins:
        raise Refused(f"The query has {len(positions)} joins, and at most {joins} are possible. Use several queries.")
    conditions = sum(token.token_type in _CONDITIONS for token in tokens)
    bare = [i for i in positions if i == 0 or tokens[i - 1].text.upper() not in _WITHOUT_CONDITION]
    if len(bare) > conditions:
        raise Refused("Each JOIN needs a condition: a JOIN b ON a.x = b.x, or a JOIN b USING (x), or CROSS JOIN.")


def _check_node(node: exp.Expr) -> None:
    if isinstance(node, _FORBIDDEN):
        raise Refused(f"{node.key.upper()} is not possible, because the tables can only be read.")
    if isinstance(node, exp.Parameter | exp.Placeholder):
        raise Refused("Parameters are not possible. Write the values into the query.")
    if isinstance(node, exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if _OUTSIDE.search(name):
            raise Refused(f"The function {name} is not available.")


def _check_table(table: exp.Table, known: set[str]) -> None:
    if isinstance(table.this, _ROW_SOURCES):
        return
    if not isinstance(table.this, exp.Identifier):
        raise Refused("Functions that read files or settings are not available. Use the tables.")
    if table.catalog or table.db.lower() not in ("", "main") or table.name.lower() not in known:
        raise Refused(f"There is no table {quoted(table.sql(dialect='duckdb'))}.")
