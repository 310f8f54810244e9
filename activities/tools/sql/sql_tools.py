"""The tools over tables of files or a database: one lists them, another runs one SELECT.

Queries run in child processes.
"""

import os
import re
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import Field

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.bounded.fair_pool import PLACES
from activities.files.file_cache import Files
from activities.files.file_reports import FileReport
from activities.tools.files import FileData
from activities.tools.secrets import Secrets
from activities.tools.sql.named_values import conditions_named, on_failed_query
from activities.tools.sql.query_hints import (
    hints_on,
    with_known_tables,
    with_plain_escapes,
    with_quoted_names,
    with_quoted_texts,
)
from activities.tools.sql.table_words import (
    SUMMARY_CHARS,
    TableOptions,
    about_table,
    all_described,
    column_summary,
    description_lines,
    example_block,
    markdown_rows,
    meaning,
    overview,
    readings_of,
    until_full,
    word_lines,
)
from activities.tools.sql.text_columns import on_text_columns
from activities.tools.tool import (
    Arguments,
    Evidence,
    Tool,
    ToolContext,
    ToolMisuse,
    ToolOutput,
    ToolSource,
)
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import NO_TABLES
from temporal_supervisor.supervision.base.text import clean, cut, one_line, quoted
from temporal_supervisor.supervision.base.trust import is_loopback
from temporal_supervisor.supervision.reuse.recipes import sha256_of

# A query that runs into its timeout does not block the next run's.
_LINE, _DATABASE_LINE = PLACES.line(3), PLACES.line(3)
_MEMORY_BYTES = 256 * 1024 * 1024  # of 200 rows of large texts, and of what DuckDB counts itself
_SECONDS = {"connect": 5, "statement": 10, "lock": 1}  # of a server that others use, too
_TIME = timedelta(seconds=20)  # of a question: connection and statements
_CHECK_TIME = timedelta(seconds=10)  # of a team's example queries
_DESCRIBED_SECONDS = 300  # tables are rarely made or changed

DATABASE_CHILD = "activities.tools.sql.postgres_process"
SQL_CHARS = 5000  # more is a program, not a question
# Of a process: the engine's own accounting does not cover its strings.
SQL_CHILD_BYTES = 768 * 1024 * 1024
SQL_CELL_CHARS = 300
_WORDS_BYTES = 2000  # of words of the house in one output
# Of a table that is asked for by name: as much as is kept of a tool's output.
_ONE_TABLE_CHARS = 200_000
_REST_CHARS = 6000  # room for words of the house, example queries and the files that can't be read
CHILD = "activities.tools.sql.sql_process"
_FENCE = re.compile(r"\A\s*+```\w*|```\s*+\Z")  # Markdown's
# Texts, names, and MySQL's names, as in `'tea'`, `"Net sales"` and `` `Net sales` ``.
_QUOTED = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|`(?P<name>[^`"\n]{1,100})`""")
_LIST_WORDS = (
    "Lists all tables with their columns and types, the values of text columns, the ranges of "
    "other columns, and example queries. Call it before the first query, and write names and "
    "values as it shows them."
)
_QUERY_WORDS = (
    f"Runs one SELECT statement, in {{}}'s SQL, and returns the first {limits.SQL_ROWS} rows as a "
    "Markdown table, with the number of rows at the end. Write names in double quotes where the "
    "list of tables shows them so. A query that matches nothing returns 0 rows. Filter and "
    "aggregate in the query instead of fetching many rows. The tables cannot be changed. A query "
    "that fails returns the reason and the names of all tables and columns."
)


class Database:
    """The tables that a database user may read; `url` names the secret with the address."""

    def __init__(self, url: str, secrets: Secrets) -> None:
        """Raises ValueError if the driver is not installed."""
        if find_spec("asyncpg") is None:
            install = "pip install 'temporal-supervisor[postgres]'"
            in_checkout = "in a checkout `uv sync --extra postgres`"
            raise ValueError(f"PostgreSQL needs a driver: {install}, {in_checkout}")
        self.tables: list[JsonObject] = []
        self.names: list[str] = []
        self.unread: list[str] = []
        self.mistakes: list[str] = []
        self.words: dict[str, str] = {}
        self._name = url
        self._secrets = secrets
        self._described = float("-inf")
        self._children = ChildProcesses(
            DATABASE_CHILD,
            _DATABASE_LINE,
            _MEMORY_BYTES,
            seconds=_TIME.total_seconds(),
        )

    @property
    def remote(self) -> str:
        """The name of a database on another machine, which sees the queries; empty on this machine.

        A database whose secret is unknown here counts as remote.
        """
        try:
            hosts = _hosts(self._secrets.value(self._name))
        except ValueError:
            return self._name
        is_here = all(host.startswith("/") or is_loopback(host) for host in hosts)
        return "" if is_here else self._name

    async def load(self, run: Files | None = None) -> "Database":
        """Returns itself with its tables described. Raises ToolMisuse if that fails now."""
        if time.monotonic() - self._described <= _DESCRIBED_SECONDS:
            return self
        described = await self._query_process("", "describe")
        self.names = [table["name"] for table in described["tables"]]
        self.tables = []
        for table in described["tables"]:
            self.tables.append({**table, "source": f"{self._name}, table {table['name']}"})
        self._described = time.monotonic()
        return self

    async def query(self, sql: str, run_id: str = "") -> JsonObject:
        """Returns `columns`, `rows` of texts, `more` and the tables `read`. Raises ToolMisuse."""
        bounds = {"rows": limits.SQL_ROWS, "cell": SQL_CELL_CHARS}
        return await self._query_process(run_id, "reply", sql, self.names, bounds)

    async def _query_process(self, owner: str, function: str, *arguments: Any) -> JsonObject:
        problem = f"The database {self._name} cannot be read now"
        try:
            url = self._secrets.value(self._name)
            return await _answer(self._children, owner, _TIME, function, url, _SECONDS, *arguments)
        except Failed:  # its text is that of any exception
            raise ToolMisuse(f"{problem}: its process failed.") from None
        except ValueError as why:
            raise ToolMisuse(f"{problem}: {why}") from None


def _hosts(url: str) -> list[str]:
    """Returns the hosts, or socket folders, in a connection string, else the driver's default.

    Raises ValueError for a text that is no URL.
    """
    parts = urlsplit(url)
    named = [_host_in(address) for address in parts.netloc.split(",")]
    for value in parse_qs(parts.query).get("host", []):
        named += value.split(",")
    hosts = [unquote(host) for host in named if host]
    return hosts or [os.environ.get("PGHOST") or "localhost"]


def _host_in(address: str) -> str:
    """Returns the host in `user:password@host:port` or `[host]:port`."""
    _, _, place = address.rpartition("@")
    if place.startswith("["):
        return place.partition("]")[0].strip("[")
    return place.partition(":")[0]


async def _answer(
    children: ChildProcesses,
    owner: str,
    time: timedelta,
    function: str,
    *arguments: Any,
) -> JsonObject:
    """Returns the answer of a child process.

    Raises ToolMisuse, Failed, and ValueError for a database that is down.
    """
    try:
        reply: JsonObject = await children.call(owner, time, function, *arguments)
    except BoundExceeded as exceeded:
        cannot = f"The query cannot be answered, because {exceeded}"
        raise ToolMisuse(f"{cannot}. Ask for less at once.") from None
    if "error" not in reply:
        return reply
    # Behind the first part a caret points into the query.
    problem, _, _ = reply["error"].partition("\n\nLINE ")
    words = one_line(clean(problem), limits.SENTENCE_BYTES)
    if "down" in reply:
        raise ValueError(words)
    raise ToolMisuse(words)


class ListTables(Arguments):
    """One table, or all."""

    table: Annotated[
        str,
        Field(
            max_length=300,
            description="A table whose columns and values are to be listed whole. Default: all.",
        ),
    ] = ""


class QueryData(Arguments):
    """One query."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SQL_CHARS,
            description="One SELECT statement over the listed tables.",
        ),
    ]


class TableStore:
    """The tables of some files, and the unreadable files. Processes answer queries of all runs."""

    def __init__(self, reports: list[FileReport]) -> None:
        self.tables: list[JsonObject] = []
        self.unread: list[str] = []
        self.mistakes: list[str] = []
        self.words: dict[str, str] = {}
        for report in reports:
            self.tables += report.tables
            self.words |= report.words
            self.mistakes += [f"{report.name}: {mistake}" for mistake in report.mistakes]
            if report.problem:
                self.unread.append(f"{report.name}: {report.problem}")
        self.names = [table["name"] for table in self.tables]
        self._setup = {
            "tables": {table["name"]: table["file"] for table in self.tables},
            "memory": _MEMORY_BYTES,
            "rows": limits.SQL_ROWS,
            "cell": SQL_CELL_CHARS,
        }

    async def query(self, sql: str, run_id: str = "") -> JsonObject:
        """Returns `columns`, `rows` of texts, `more` and the tables `read`. Raises ToolMisuse."""
        return await _answer(_engines(CHILD), run_id, limits.SQL_TIMEOUT, "reply", sql, self._setup)


@cache
def _engines(module: str) -> ChildProcesses:
    """Returns the processes that query files; all files share them."""
    return ChildProcesses(module, _LINE, SQL_CHILD_BYTES)


class TableTools(ToolSource):
    """The tools over some tables. `tools` maps the name of each tool to its kind."""

    def __init__(
        self,
        data: Files | Database,
        tools: dict[str, str],
        options: TableOptions,
    ) -> None:
        self._store = data if isinstance(data, Database) else FileData(data, TableStore)
        self._tools = tools
        self._options = options

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools. Raises ValueError for unusable files or options.

        A database is not asked, because it may be down.
        """
        if isinstance(self._store, Database):
            engine = "PostgreSQL"
            server = self._store.remote
        else:
            engine = "DuckDB"
            server = ""
            store = await self._store.load()
            if self._options.tables and not store.names:
                raise ValueError("; ".join(store.unread) or "the files hold no table")
            await self._check_options(store.names, "duckdb")

        made: dict[str, tuple[str, type[Arguments], Callable[..., Any]]] = {
            "sql_tables": (_LIST_WORDS, ListTables, self._list),
            "sql_query": (_QUERY_WORDS.format(engine), QueryData, self._query),
        }
        proves: dict[str, Evidence] = {"sql_tables": "listing", "sql_query": "data"}
        return [
            Tool(
                name,
                *made[kind],
                catalogue=self.catalogue,
                named=self._name_values if kind == "sql_tables" else None,
                evidence=proves[kind],
                outside=isinstance(self._store, Database),
                server=server,
                version=self._version,
            )
            for name, kind in self._tools.items()
        ]

    async def _name_values(self, run: Files | None, text: str) -> str:
        """Returns a line on the values that a text names; empty if it names none."""
        store = await self._store.load(run)
        conditions = conditions_named(text, store.tables)
        return f"Values that your subtask names: {'; '.join(conditions)}" if conditions else ""

    async def _version(self) -> str:
        """Returns a hash of the team's tables and options; empty for a database."""
        if isinstance(self._store, Database):
            return ""
        return sha256_of([await self._store.version(), self._options.model_dump(mode="json")])

    async def problems(self) -> list[str]:
        """Returns the unreadable files with the reasons, or the problem with the database."""
        try:
            store = await self._store.load()
            if isinstance(store, Database):
                await self._check_options(store.names, "postgres")
        except (ToolMisuse, ValueError) as problem:
            return [str(problem)]
        return [*store.unread, *store.mistakes]

    async def _check_options(self, names: list[str], dialect: str) -> None:
        """Raises ValueError for unknown tables, and for examples that cannot run."""
        for name in [*self._options.descriptions, *self._options.sources]:
            if name not in names:
                raise ValueError(f"there is no table '{name}', the tables are {', '.join(names)}")
        examples = self._options.examples
        if not examples:
            return
        asked = ([example.sql for example in examples], names, dialect)
        try:
            found = await _engines(CHILD).call("", _CHECK_TIME, "refusals", *asked)
        except BoundExceeded as exceeded:
            raise ValueError(f"the examples cannot be checked: {exceeded}") from None
        for example, problem in zip(examples, found, strict=True):
            if problem:
                raise ValueError(f"the example {quoted(example.question)} cannot run: {problem}")

    async def catalogue(self, run: Files | None) -> dict[str, str]:
        """Returns a line for each table: its columns with their ranges or first values."""
        try:
            store = await self._store.load(run)
        except ToolMisuse as problem:
            return {f"database {self._options.url}": str(problem)}
        lines: dict[str, str] = {}
        for words in word_lines(store.words):
            lines[f"words {words}"] = f"a word of the owner of these data: {words}"
        for table in store.tables:
            lines |= self._table_lines(table)
        return lines

    def _table_lines(self, table: JsonObject) -> dict[str, str]:
        """Returns the catalogue's line on a table, and that on the meanings of its columns."""
        name = f"table {table['name']}"
        columns = "; ".join(until_full(map(column_summary, table["columns"]), SUMMARY_CHARS))
        line = f"{name} ({columns}; rows: {table['rows']})"
        about = about_table(table, self._options)
        lines = {name: f"{line}: {about}" if about else line}

        meanings = ((column["sql"], meaning(column)) for column in table["columns"])
        described = (f"{column}: {words}" for column, words in meanings if words)
        about_columns = until_full(described, SUMMARY_CHARS)
        if about_columns:
            lines[f"{name}, columns"] = f"of {name}: {'; '.join(about_columns)}"
        return lines

    async def _list(self, arguments: ListTables, context: ToolContext) -> ToolOutput:
        store = await self._store.load(context.files)
        named = [table for table in store.tables if table["name"] == arguments.table]
        if named:
            lines = until_full(description_lines(named[0], self._options), _ONE_TABLE_CHARS)
            return ToolOutput("\n".join(lines))

        room = limits.TOOL_OUTPUT_CHARS - _REST_CHARS
        shown = all_described(store.tables, self._options, room) or [NO_TABLES]
        if store.words:
            words = cut("\n".join(word_lines(store.words)), _WORDS_BYTES)
            shown += ["\nWords of the owner of these data:", words]
        if self._options.examples:
            shown += ["\nExample queries:", *map(example_block, self._options.examples)]
        if store.unread:
            shown += ["\nFiles that cannot be read:", *store.unread]
        return ToolOutput("\n".join(shown))

    async def _query(self, arguments: QueryData, context: ToolContext) -> ToolOutput:
        store = await self._store.load(context.files)
        sql = _plain_quotes(_FENCE.sub("", arguments.sql))
        try:
            rows = await self._rows(store, sql, context.run_id)
        except ToolMisuse as misuse:
            helps = _on_failure(str(misuse), sql, store)
            raise ToolMisuse(f"{misuse}\n{helps}") from misuse

        files = {table["name"]: table["source"] for table in store.tables}
        given = self._options.sources
        sources = dict.fromkeys(given.get(name, files[name]) for name in rows["read"])
        read = [table for table in store.tables if table["name"] in rows["read"]]
        hints = hints_on(sql, rows, read)
        text = "\n".join([markdown_rows(rows), *hints.lines])
        readings = readings_of(read, rows.get("columns_read"))
        return ToolOutput(text, sources=[*sources], readings=readings, facts=hints.facts)

    async def _rows(self, store: TableStore | Database, sql: str, run_id: str) -> JsonObject:
        """Returns the result of a query, with corrected names and quotes if it failed.

        They are corrected only after a failure, because such a word may be an alias. Raises
        ToolMisuse.
        """
        try:
            return await store.query(sql, run_id)
        except ToolMisuse:
            mended = with_known_tables(with_plain_escapes(sql), store.tables)
            mended = with_quoted_names(mended, store.tables)
            mended = with_quoted_texts(mended, store.tables)
            if mended == sql:
                raise
        return await store.query(mended, run_id)


def _on_failure(problem: str, sql: str, store: TableStore | Database) -> str:
    """Returns help for a query that failed: hints, the tables, and unreadable files."""
    hints = "".join(f"{line}\n" for line in on_failed_query(sql, store.tables))
    texts = on_text_columns(problem, sql, store.tables)
    helps = f"{hints}{texts}{overview(store.tables)}"
    if store.unread:
        helps += f"\nFiles that cannot be read: {'; '.join(store.unread)}"
    return helps


def _plain_quotes(sql: str) -> str:
    """Returns a query with double quotes around names, in place of MySQL's backquotes."""

    def replaced(part: re.Match[str]) -> str:
        name = part["name"]
        return part[0] if name is None else f'"{name}"'

    return _QUOTED.sub(replaced, sql)
