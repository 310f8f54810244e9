"""The tables that an agent was shown: their columns, as the tools for SQL list them.

`listed_tables` takes texts and returns the columns of each table in them, with their values or
ranges, `listed_names` the names alone, also of a list that was cut. A list of two tables:

    table race (rider VARCHAR, "Laps led" BIGINT, day DATE): no description. Rows: 33
      rider: 'Porto, Sebastian', Max Biaggi, ... and 31 more
      "Laps led": 0 to 20
      day: 2004-05-02 to 2004-10-31
    table teams (name VARCHAR): all teams. Rows: 4
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from temporal_supervisor.supervision.grounding.rows.queries import plain_name

# A line such as `table race (rider VARCHAR, "Laps led" BIGINT): Rows: 33`: the name, and the rest.
_TABLE = re.compile(r"^table (\"[^\"\n]+\"|[^\s(\"]+) \((.*)$", re.MULTILINE)
# Of the rest each `rider` and `"Laps led"`, also before a type in small letters, as PostgreSQL has.
_NAME = re.compile(r"(?:\A|[,;] )(\"[^\"\n]+\"|[^\W\d]\w*)[ :]")
# Of the heads `rider VARCHAR` and `"Laps led" BIGINT`: the name and the type of a column.
_HEAD = re.compile(
    r"(?:\A|, )(\"(?:[^\"]|\"\")+\"|[^\W\d]\w*|[^\s,\"]+) "
    r"([A-Z][A-Z0-9_ ]*(?:\([\d, ]*\))?(?:\[\])?)"
)
# A line below: the name of a column, and its values or its range.
_COLUMN = re.compile(r"^  (\"(?:[^\"]|\"\")+\"|[^\s:\"]+): (.+)$")
# "0 to 20", "2004-05-02 to 2004-10-31", "-1.5 to 3 m"; not "one to two".
_RANGE = re.compile(r"(-?[\d.]+|\d{4}-\d\d-\d\d[^ ]*) to (-?[\d.]+|\d{4}-\d\d-\d\d[^ ]*)(?: \S+)?")
# Each of `'Porto, Sebastian', Max Biaggi, ... and 31 more`: in quotes, or up to a comma.
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_MORE = re.compile(r"\.\.\. and \d+ more")


@dataclass
class ListedColumn:
    """A column: its name, whether it holds texts, and the `ends` of its range or its values.

    Numbers and dates have a range, texts have values.
    """

    name: str
    is_text: bool
    ends: tuple[str, str] | None = None
    values: list[str] = field(default_factory=list)


def listed_tables(texts: Iterable[str]) -> dict[str, list[ListedColumn]]:
    """Returns the columns of each table that a text lists, by its name in small letters."""
    tables: dict[str, list[ListedColumn]] = {}
    for text in texts:
        for found in _TABLE.finditer(text):
            heads, _, _ = found[2].rpartition("):")
            below = text[found.end() + 1 :]
            tables[plain_name(found[1])] = _columns(heads, below)
    return tables


def listed_names(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yields the tables that a text lists, each with the names of its columns."""
    for found in _TABLE.finditer(text):
        columns = {plain_name(written) for written in _NAME.findall(found[2])}
        yield plain_name(found[1]), columns


def _columns(heads: str, below: str) -> list[ListedColumn]:
    """Returns the columns of a table: their heads, and the lines `below` that describe them."""
    columns: dict[str, ListedColumn] = {}
    for head in _HEAD.finditer(heads):
        name = plain_name(head[1])
        columns[name] = ListedColumn(name, is_text=head[2].startswith("VARCHAR"))
    for name, known in _described(below):
        if name in columns:
            _note(columns[name], known)
    return [*columns.values()]


def _described(below: str) -> Iterator[tuple[str, str]]:
    """Yields each column with its values or range, up to the first line that is not indented."""
    for line in below.splitlines():
        if not line.startswith("  "):
            return
        found = _COLUMN.match(line)
        if found:
            yield plain_name(found[1]), found[2]


def _note(column: ListedColumn, known: str) -> None:
    """Notes the range or the values of a column."""
    ends = _RANGE.fullmatch(known)
    if ends:
        column.ends = ends[1], ends[2]
        return
    for value in _VALUE.finditer(known):
        text = value[2] or value[1].replace("''", "'")
        if not _MORE.fullmatch(text):
            column.values.append(text)
