"""The check of a model's SQL: one SELECT over the given tables. Refusals are explained.

For files it exists for its messages: DuckDB's own locks (`sql_process`) hold without it. A
PostgreSQL server offers its users more than tables, so there only functions that are known to
compute pass, and the checked text is what runs. The check runs in the engine's process, under its
time limit: the parser needs exponential time for some texts. It imports little, because that
process starts often.
"""

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import NAME_SHOWN_BYTES, clean, one_line, quoted

# It warns of each statement that it only half understands.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

_FORBIDDEN = (exp.DDL, exp.DML, exp.Into, exp.Lock, exp.Describe)  # may stand within a SELECT
_ROW_SOURCES = (exp.GenerateSeries, exp.Unnest, exp.Values)  # functions that may stand after FROM
_OUTSIDE = re.compile(
    r"^(read_|load_|pragma_|duckdb_|pg_|query|sleep)|"
    r"current_setting|getenv|getvariable|nextval|currval|setseed|"
    r"^(current|session)_(user|role|catalog|database|schemas?|version)$"
)
_HOME = {"duckdb": "main", "postgres": "public"}  # the schema of tables that are named without one
# Functions of PostgreSQL that only compute, and for which sqlglot has no class.
_POSTGRES_FUNCTIONS = re.compile(
    r"""age|clock_timestamp|date_subtract|make_date|make_timestamptz|statement_timestamp|timezone
    |isfinite|array_(agg|dims|fill|lower|ndims|positions|replace|upper)|cardinality
    |generate_subscripts|string_to_table
    |jsonb?_(agg|(array_elements|each|extract_path)(_text)?|array_length|build_(array|object))
    |jsonb?_(object_keys|typeof)
    |jsonb_(path_(exists|query|query_array|query_first)|pretty|strip_nulls)
    |row_to_json|to_jsonb?|row
    |every|gcd|lcm|min_scale|scale|trim_scale|num_(non)?nulls|octet_length
    |regexp_(match|matches|split_to_(array|table))
    |(date|int4|int8|num|ts|tstz)range|range_(agg|merge)|isempty|(lower|upper)_inc|(lower|upper)_inf
    |(phraseto_|plainto_|websearch_to_|to_)tsquery|to_tsvector|ts_headline|ts_rank|ts_rank_cd""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Refused(Exception):
    """A statement that is not run; the message says what to do instead."""


def check(sql: str, tables: list[str], dialect: str = "duckdb") -> exp.Expr:
    """Returns the parsed query.

    Raises Refused unless it is one SELECT (or WITH, UNION) over `tables`. The result names
    PostgreSQL's tables with their schema: it runs without a search path, which could contain
    functions.
    """
    try:
        parsed = sqlglot.parse(sql, read=dialect)
    except RecursionError:
        raise Refused("The query is nested too deeply. Simplify it.") from None
    except SqlglotError as error:
        problem = one_line(clean(str(error)), limits.SENTENCE_BYTES)
        raise Refused(f"The query is not valid SQL: {problem}") from error
    written = [part for part in parsed if part is not None]
    statements = [part for part in written if not isinstance(part, exp.Semicolon)]
    if len(statements) != 1:
        raise Refused(f"Send exactly one SELECT statement, not {len(statements)}.")
    query = statements[0].unnest()
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise Refused(f"Only SELECT is possible, not {statements[0].key.upper()}.")
    if query.find(exp.Pivot):  # the engine runs a PIVOT as several statements
        instead = "Write one column for each value: sum(x) FILTER (WHERE column = value)."
        raise Refused(f"PIVOT is not available. {instead}")

    for node in query.walk():
        _check_node(node)
        if dialect == "postgres":
            _check_postgres(node)
    names = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    for name in names:
        # Outside its part of the query such a name of PostgreSQL's is a table of the server.
        if name.startswith("pg_") or not _PLAIN_NAME.fullmatch(name):
            allowed = "Use letters, digits and underscores, and no pg_."
            raise Refused(f"'{name}' cannot name a WITH clause. {allowed}")
    _check_tables(query, set(map(_plain_name, tables)), names, dialect)
    return query


def tables_read(query: exp.Expr, tables: list[str], dialect: str = "duckdb") -> list[str]:
    """Returns the names of the `tables` that `query` reads."""
    read = {_spelled(table, dialect) for table in query.find_all(exp.Table)}
    return [name for name in tables if _plain_name(name) in read]


def columns_read(query: exp.Expr) -> list[str] | None:
    """Returns the names of columns in `query`, in lower case; None if it selects all with `*`."""
    # count(*) reads no column
    if any(not isinstance(star.parent, exp.Count) for star in query.find_all(exp.Star)):
        return None
    return sorted({column.name.lower() for column in query.find_all(exp.Column)})


def names_column(query: exp.Expr, name: str) -> bool:
    """True if `query` names a column, in whatever case, and gives that name to none of its own."""
    identifiers = [each for each in query.find_all(exp.Identifier) if each.name.lower() == name]
    given = (exp.Alias, exp.TableAlias)
    return bool(identifiers) and not any(isinstance(each.parent, given) for each in identifiers)


def _plain_name(name: str) -> str:
    """Returns a name without quotes, in lower case."""
    return name.replace('"', "").lower()


def _spelled(table: exp.Table, dialect: str) -> str:
    """Returns a table's name in the form of `_plain_name`, without the default schema."""
    name = f"{table.db}.{table.name}".lower()
    return name.removeprefix(f"{_HOME[dialect]}.").removeprefix(".")


def _check_node(node: exp.Expr) -> None:
    """Raises Refused for writing, for parameters, and for functions that reach outside."""
    is_part = isinstance(node, exp.CTE)
    statement = node.this if is_part else node
    writes = is_part and not isinstance(statement, exp.Query | exp.Values)
    if isinstance(node, _FORBIDDEN) or writes:
        kind = statement.key.upper()
        raise Refused(f"{kind} is not possible, because the tables can only be read.")
    if isinstance(node, exp.Parameter | exp.Placeholder):
        raise Refused("Parameters are not possible. Write the values into the query.")
    if isinstance(node, exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if _OUTSIDE.search(name):
            raise Refused(f"The function {name} is not available.")


def _check_postgres(node: exp.Expr) -> None:
    """Raises Refused for calls of the server's code, except its well-known functions."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if not _POSTGRES_FUNCTIONS.fullmatch(name):
            raise Refused(f"The function {one_line(name, NAME_SHOWN_BYTES)} is not available.")
    has_schema = isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func)
    if has_schema or isinstance(node, exp.Operator | exp.ObjectIdentifier):
        plain = "Functions and operators are written without a schema"
        raise Refused(f"{plain}, and names of objects are no values.")


def _check_tables(query: exp.Expr, tables: set[str], own: set[str], dialect: str) -> None:
    """Raises Refused for other tables than `tables` and the query's `own` ones.

    Gives PostgreSQL's tables their schema.
    """
    is_postgres = dialect == "postgres"
    twice = own & tables if is_postgres else set()
    if twice:
        raise Refused(f"'{twice.pop()}' is a table. Give the WITH clause another name.")
    row_sources = exp.Func if is_postgres else _ROW_SOURCES
    for table in query.find_all(exp.Table):
        if isinstance(table.this, row_sources):
            continue
        if not isinstance(table.this, exp.Identifier):
            outside = "Functions that read files or settings"
            raise Refused(f"{outside} are not available. Use the tables.")
        is_own = not table.db and table.name.lower() in own
        if table.catalog or not (is_own or _spelled(table, dialect) in tables):
            raise Refused(f"There is no table {quoted(table.sql(dialect=dialect))}.")
        if is_postgres and not (table.db or is_own):
            table.set("db", exp.to_identifier(_HOME[dialect]))
