"""Words about tables for models: the team's, lists of tables, the results of queries."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import model_validator

from activities.files.file_reports import contents, reading_line
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import EXAMPLE
from temporal_supervisor.supervision.base.text import clean, cut, one_line
from temporal_supervisor.supervision.contract.base import StrictModel, matching

_SECRET = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*)?")
_SECRET_RULE = "the name of a secret, such as SHOP_DATABASE, never a URL itself"
_SecretOrNone = Annotated[str, matching(_SECRET, _SECRET_RULE)]
SUMMARY_CHARS = 1000  # of a table's columns in the catalogue, whose lines are shorter
_LEAST_SHOWN = 100  # of a table among many; of the rest there are names alone
_NAMES_CHARS = 2000
_NOTED_COLUMNS = 3  # of those that the same note is on
CATALOGUE_VALUES = 5  # of a text column: enough to see what kind of names there are


class QueryExample(StrictModel):
    """A question and the query that answers it, to show the meaning of the tables."""

    question: str
    sql: str


class TableOptions(StrictModel):
    """Options of both tools: the team's files with tables, their descriptions, example queries.

    Without `tables` the tools read only the files of the run, which they always read. With a
    `database` they read its tables and no files; `url` is the name of the secret with its
    connection string.
    """

    tables: str = ""
    database: Literal["", "postgres"] = ""
    url: _SecretOrNone = ""
    descriptions: dict[str, str] = {}
    sources: dict[str, str] = {}
    examples: list[QueryExample] = []

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if bool(self.database) != bool(self.url) or (self.database and self.tables):
            raise ValueError(
                'the tables are of files (tables = "data/*.csv") or of a database '
                '(database = "postgres" and url = "NAME_OF_A_SECRET")'
            )
        return self


def about_table(table: JsonObject, options: TableOptions) -> str:
    """Returns the description of a table, by the team, its owner or database, else its heading."""
    about: str = options.descriptions.get(table["name"]) or table.get("about", "")
    return (about or cut(" / ".join(table.get("above", [])), limits.LINE_BYTES)).rstrip(".")


def word_lines(words: Mapping[str, str]) -> list[str]:
    """Returns a line for each word of the house, such as `revenue = amount without returns`."""
    said = [clean(f"{word} = {meaning}") for word, meaning in words.items()]
    return [one_line(line, limits.SENTENCE_BYTES) for line in said]


def meaning(column: JsonObject) -> str:
    """Returns the description of a column; empty without one."""
    about: str = column.get("about", "")
    return about.rstrip(".")


def column_summary(column: JsonObject) -> str:
    """Returns a column with its range or first values, for a line of the catalogue."""
    known = contents(column, CATALOGUE_VALUES)
    if not known:
        return f"{column['sql']} {column['type']}"
    return f"{column['sql']}: {known}{_unit(column)}"


def _unit(column: JsonObject) -> str:
    """Returns the unit of a column's values after a blank; empty if they have none."""
    unit = column.get("unit", "")
    return f" {unit}" if unit else ""


def readings_of(tables: list[JsonObject], names: list[str] | None) -> list[str]:
    """Returns the readings of the named columns; changed texts come first."""
    told = list[tuple[bool, str]]()
    for table in tables:
        for column in table["columns"]:
            reading = column.get("reading") or {}
            is_asked = names is None or column["name"].lower() in names
            if not reading.get("written") or not is_asked:
                continue
            same = reading["written"] == reading["value"]
            told.append((same, f"{table['name']}.{column['sql']}: {reading_line(reading)}"))
    return [line for _, line in sorted(told, key=lambda each: each[0])]


def all_described(tables: list[JsonObject], options: TableOptions, room: int) -> list[str]:
    """Returns descriptions of all tables, cut to `room` characters.

    Only the shown part of a table is described: all of many would keep the event loop too long.
    """
    wholes = ("\n".join(until_full(description_lines(table, options), room)) for table in tables)
    shown = until_full(wholes, room)
    if sum(map(len, shown)) <= room:
        return shown
    share = max(room // len(tables), _LEAST_SHOWN)
    listed, others = tables[: room // share], tables[room // share :]
    parts = [until_full(description_lines(table, options), share) for table in listed]
    shown = [cut("\n".join(part), share) for part in parts]
    if others:
        names = ", ".join(until_full((table["name"] for table in others), _NAMES_CHARS))
        shown.append(f"and {len(others)} more tables: {cut(names, _NAMES_CHARS)}")
    return [*shown, "Tables are cut: this tool shows all of one if you give its name as `table`."]


def description_lines(table: JsonObject, options: TableOptions) -> Iterator[str]:
    """Yields the lines that describe a table."""
    name = table["name"]
    columns = ", ".join(f"{column['sql']} {column['type']}" for column in table["columns"])
    about = about_table(table, options) or "no description"
    source = options.sources.get(name, table["source"])
    yield f"table {name} ({columns}): {about}. Rows: {table['rows']}. Source: {source}"
    for column in table["columns"]:
        if known := contents(column):
            yield f"  {column['sql']}: {known}{_unit(column)}"
    for column in table["columns"]:
        if words := meaning(column):
            yield f"  Note: {column['sql']}: {words}"
    yield from (f"  Note: {note}" for note in _notes(table))


def _notes(table: JsonObject) -> Iterator[str]:
    """Yields the notes on a table; a note on many columns is given once.

    Example: `2004, 2005, 2006 and 7 more columns: commas group thousands`.
    """
    names = {column["name"] for column in table["columns"]}
    by_words = dict[str, list[str]]()
    for note in table["notes"]:
        name, _, words = note.partition(": ")
        if name in names:
            by_words.setdefault(words, []).append(name)
        else:
            by_words.setdefault(note, [])

    for words, noted in by_words.items():
        more = len(noted) - _NOTED_COLUMNS
        shown = ", ".join(noted[:_NOTED_COLUMNS])
        shown += f" and {more} more columns" if more > 0 else ""
        yield f"{shown}: {words}" if noted else words


def until_full(parts: Iterable[str], room: int) -> list[str]:
    """Returns the first parts up to `room` characters, without making any further ones."""
    found = list[str]()
    for part in parts:
        found.append(part)
        room -= len(part)
        if room < 0:
            break
    return found


def example_block(example: QueryExample) -> str:
    """Returns an example query in the form that models see."""
    question = one_line(example.question, limits.SENTENCE_BYTES).replace('"', "'")
    return f'<{EXAMPLE} question="{question}">\n{example.sql.strip()}\n</{EXAMPLE}>'


def overview(tables: list[JsonObject]) -> str:
    """Returns the names of tables and columns, for a query that failed."""
    named = map(_with_columns, tables)
    return f"Tables: {'; '.join(until_full(named, limits.TOOL_OUTPUT_CHARS))}"


def _with_columns(table: JsonObject) -> str:
    columns = ", ".join(column["sql"] for column in table["columns"])
    return f"{table['name']} ({columns})"


def markdown_rows(result: JsonObject) -> str:
    """Returns the result of a query as a Markdown table, with the number of rows at the end."""
    head = [_line(result["columns"]), _line(["---"] * len(result["columns"]))]
    rows = list(map(_line, result["rows"]))
    plural = "" if len(rows) == 1 else "s"
    count = f"first {len(rows)} rows of more" if result["more"] else f"{len(rows)} row{plural}"
    return "\n".join([*head, *rows, count])


def _line(cells: list[str]) -> str:
    plain = [clean(cell).replace("\n", " ").replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(plain)} |"
