"""Tables of a team's CSV files: `list_tables` shows what there is, `query_data` runs one SELECT over it."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from activities.tools.clean import clean
from activities.tools.sql.table_store import Rows, TableStore, table_store
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision import limits
from supervision.contract.base import StrictModel


class TableOptions(StrictModel):
    """Options of both kinds: which files are tables, and per table what it holds and where it is from."""

    tables: str
    descriptions: dict[str, str] = {}
    sources: dict[str, str] = {}


class ListTables(Arguments):
    """No arguments."""


class QueryData(Arguments):
    """One query."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=limits.SQL_CHARS,
            description="One SELECT statement in DuckDB's SQL over the tables that list_tables shows.",
        ),
    ]


def list_tables(name: str, options: dict[str, Any], folder: Path) -> Tool[ListTables]:
    """The kind `sql_tables`. Raises ValueError on bad options or files."""
    settings = _settings(options, folder)

    async def run(arguments: ListTables, context: ToolContext) -> ToolOutput:
        tables = await table_store(folder, settings.tables).tables()
        text = "\n".join(_describe(table, settings) for table in tables)
        return ToolOutput(text)

    description = (
        "Lists the tables with their columns, the values of text columns and the ranges of the others. "
        "Call it before the first query."
    )
    return Tool(name, description, ListTables, run, local=True)


def query_data(name: str, options: dict[str, Any], folder: Path) -> Tool[QueryData]:
    """The kind `sql_query`. Raises ValueError on bad options or files."""
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
    return Tool(name, description, QueryData, run)


def _settings(options: dict[str, Any], folder: Path) -> TableOptions:
    settings = TableOptions.model_validate(options)
    names = table_store(folder, settings.tables).names
    for name in [*settings.descriptions, *settings.sources]:
        if name not in names:
            raise ValueError(f"there is no table '{name}': {settings.tables} gives {', '.join(names)}")
    return settings


def _describe(table: dict[str, Any], settings: TableOptions) -> str:
    name = table["name"]
    columns = ", ".join(f"{column['name']} {column['type']}" for column in table["columns"])
    about = settings.descriptions.get(name, "no description")
    source = settings.sources.get(name, "unknown")
    lines = [f"table {name} ({columns}): {about.rstrip('.')}. Rows: {table['rows']}. Source: {source}"]
    for column in table["columns"]:
        if "values" in column:
            shown = ", ".join(map(_listed, column["values"]))
            more = f", ... and {column['more']} more" if column["more"] else ""
            lines.append(f"  {column['name']}: {shown}{more}")
        else:
            low, high = column["range"]
            lines.append(f"  {column['name']}: {low} to {high}")
    return "\n".join(lines)


def _listed(value: str) -> str:
    """A value that contains the separator is written as in SQL."""
    plain = clean(value).replace("\n", " ")
    return "'" + plain.replace("'", "''") + "'" if ", " in plain else plain


async def _overview(store: TableStore) -> str:
    tables = [
        f"{table['name']} ({', '.join(column['name'] for column in table['columns'])})"
        for table in await store.tables()
    ]
    return f"Tables: {'; '.join(tables)}"


def _markdown(found: Rows) -> str:
    lines = [_line(found.columns), _line(["---"] * len(found.columns))]
    room = limits.TOOL_OUTPUT_CHARS - sum(map(len, lines)) - 100
    kept = 0
    for row in found.rows:
        line = _line(row)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
        kept += 1
    more = found.more or kept < len(found.rows)
    count = f"first {kept} rows of more" if more else f"{kept} row{'' if kept == 1 else 's'}"
    return "\n".join([*lines, count])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(clean(cell).replace("\n", " ").replace("|", "\\|") for cell in cells) + " |"
