"""Tables of a team's CSV files: `list_tables` shows what there is, `query_data` runs one SELECT over it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from activities.tools.sql.sql_check import Refused, check
from activities.tools.sql.table_store import Rows, TableStore, table_store
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.base.prompt_marks import EXAMPLE
from supervision.base.text import clean, one_line, quoted
from supervision.contract.base import StrictModel

SQL_CHARS = 5000  # more is a program, not a question
_CATALOGUE_VALUES = 5  # of a text column: enough to see what kind of names there are


class QueryExample(StrictModel):
    """A question and the query that answers it, to show how the tables are meant."""

    question: str
    sql: str


_LAST_LINE_CHARS = 100  # room for the count of rows


class TableOptions(StrictModel):
    """Options of both kinds: which files are tables, per table its content and source, and example queries."""

    tables: str
    descriptions: dict[str, str] = {}
    sources: dict[str, str] = {}
    examples: list[QueryExample] = []


class ListTables(Arguments):
    """No arguments."""


class QueryData(Arguments):
    """One query."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SQL_CHARS,
            description="over the tables that list_tables shows",
        ),
    ]


def list_tables(name: str, options: dict[str, Any], folder: Path) -> Tool[ListTables]:
    """Returns a tool of the kind `sql_tables`. Raises ValueError on bad options or files."""
    settings = _settings(options, folder)

    async def run(arguments: ListTables, context: ToolContext) -> ToolOutput:
        tables = await table_store(folder, settings.tables).tables()
        shown = [_describe(table, settings) for table in tables]
        if settings.examples:
            shown += ["\nExample queries:", *map(_example, settings.examples)]
        return ToolOutput("\n".join(shown))

    description = (
        "Lists the tables with their columns, the values of text columns and the ranges of the others, with examples "
        "of queries. "
        "Call it before the first query."
    )
    return Tool(name, description, ListTables, run, catalogue=_catalogue(folder, settings))


def query_data(name: str, options: dict[str, Any], folder: Path) -> Tool[QueryData]:
    """Returns a tool of the kind `sql_query`. Raises ValueError on bad options or files."""
    settings = _settings(options, folder)

    async def run(arguments: QueryData, context: ToolContext) -> ToolOutput:
        store = table_store(folder, settings.tables)
        try:
            rows = await store.query(arguments.sql, context.run_id)
        except ToolMisuse as misuse:
            raise ToolMisuse(f"{misuse}\n{await _overview(store)}") from misuse
        sources = dict.fromkeys(settings.sources.get(table, table) for table in rows.read)
        return ToolOutput(_markdown(rows), sources=list(sources))

    description = (
        f"Runs one SELECT statement (DuckDB's SQL) and returns at most {limits.SQL_ROWS} rows as a Markdown table. "
        "Data can only be read. Aggregate in the query instead of fetching many rows."
    )
    return Tool(name, description, QueryData, run, catalogue=_catalogue(folder, settings))


def _catalogue(folder: Path, settings: TableOptions) -> Callable[[], Awaitable[dict[str, str]]]:
    async def tables() -> dict[str, str]:
        return {
            f"table {table['name']}": _summary(table, settings)
            for table in await table_store(folder, settings.tables).tables()
        }

    return tables


def _summary(table: dict[str, Any], settings: TableOptions) -> str:
    """Returns one line on a table: its columns with their ranges or first values, and what it holds."""
    about = settings.descriptions.get(table["name"], "").rstrip(".")
    columns = ", ".join(map(_column, table["columns"]))
    return f"table {table['name']} ({columns}){': ' if about else ''}{about}"


def _column(column: dict[str, Any]) -> str:
    if "values" not in column:
        low, high = column["range"]
        return f"{column['name']} {low} to {high}"
    shown, more = column["values"][:_CATALOGUE_VALUES], column["more"]
    count = len(column["values"]) + more
    return f"{column['name']}: {' | '.join(shown)}{f' | ... {count} in all' if count > len(shown) else ''}"


def _settings(options: dict[str, Any], folder: Path) -> TableOptions:
    settings = TableOptions.model_validate(options)
    names = table_store(folder, settings.tables).names
    for name in [*settings.descriptions, *settings.sources]:
        if name not in names:
            raise ValueError(f"there is no table '{name}': {settings.tables} gives {', '.join(names)}")
    for example in settings.examples:
        try:
            check(example.sql, names, limits.SQL_JOINS)
        except Refused as refused:
            raise ValueError(f"the example {quoted(example.question)} cannot run: {refused}") from refused
    return settings


def _describe(table: dict[str, Any], settings: TableOptions) -> str:
    name = table["name"]
    columns = ", ".join(f"{column['name']} {column['type']}" for column in table["columns"])
    about = settings.descriptions.get(name, "no description")
    source = settings.sources.get(name, "unknown")
    lines = [f"table {name} ({columns}): {about.rstrip('.')}. Rows: {table['rows']}. Source: {source}"]
    for column in table["columns"]:
        if "values" in column:
            values = ", ".join(map(_listed, column["values"]))
            more = f", ... and {column['more']} more" if column["more"] else ""
            lines.append(f"  {column['name']}: {values}{more}")
        else:
            low, high = column["range"]
            lines.append(f"  {column['name']}: {low} to {high}")
    return "\n".join(lines)


def _example(example: QueryExample) -> str:
    question = one_line(example.question, limits.SENTENCE_BYTES).replace('"', "'")
    return f'<{EXAMPLE} question="{question}">\n{example.sql.strip()}\n</{EXAMPLE}>'


def _listed(value: str) -> str:
    """Returns a value as it is listed; one that contains the separator is written as in SQL."""
    plain = clean(value).replace("\n", " ")
    return "'" + plain.replace("'", "''") + "'" if ", " in plain else plain


async def _overview(store: TableStore) -> str:
    tables = [
        f"{table['name']} ({', '.join(column['name'] for column in table['columns'])})"
        for table in await store.tables()
    ]
    return f"Tables: {'; '.join(tables)}"


def _markdown(result: Rows) -> str:
    lines = [_line(result.columns), _line(["---"] * len(result.columns))]
    room = limits.TOOL_OUTPUT_CHARS - sum(map(len, lines)) - _LAST_LINE_CHARS
    shown = 0
    for row in result.rows:
        line = _line(row)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
        shown += 1
    more = result.more or shown < len(result.rows)
    count = f"first {shown} rows of more" if more else f"{shown} row{'' if shown == 1 else 's'}"
    return "\n".join([*lines, count])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(clean(cell).replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
