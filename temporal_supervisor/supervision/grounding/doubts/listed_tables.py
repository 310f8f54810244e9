"""The tables that an agent was shown: their columns, with their values and ranges, as the tools for SQL list them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_TABLE = re.compile(r"^table (\"[^\"\n]+\"|[^\s(\"]+) \((.*)\):[^\n]*$", re.MULTILINE)
_HEAD = re.compile(r"(?:\A|, )(\"(?:[^\"]|\"\")+\"|[^\W\d]\w*|[^\s,\"]+) ([A-Z][A-Z0-9_ ]*(?:\([\d, ]*\))?(?:\[\])?)")
_COLUMN = re.compile(r"^  (\"(?:[^\"]|\"\")+\"|[^\s:\"]+): (.+)$")
_RANGE = re.compile(r"(-?[\d.]+|\d{4}-\d\d-\d\d[^ ]*) to (-?[\d.]+|\d{4}-\d\d-\d\d[^ ]*)(?: \S+)?")
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_MORE = re.compile(r"\.\.\. and \d+ more")


@dataclass
class ListedColumn:
    """A column: its name, whether it holds numbers or dates, the ends of its range, and the values of a text column."""

    name: str
    is_text: bool
    ends: tuple[str, str] | None = None
    values: list[str] = field(default_factory=list)


def listed_tables(texts: Iterable[str]) -> dict[str, list[ListedColumn]]:
    """Returns the columns of each table that a text lists, by the table's name in small letters."""
    tables = dict[str, list[ListedColumn]]()
    for text in texts:
        for found in _TABLE.finditer(text):
            columns = {name: ListedColumn(name, kind.startswith("VARCHAR")) for name, kind in _heads(found[2])}
            for name, known in _described(text[found.end() + 1 :]):
                if name in columns:
                    _note(columns[name], known)
            tables[_plain(found[1])] = [*columns.values()]
    return tables


def _heads(listed: str) -> Iterator[tuple[str, str]]:
    for head in _HEAD.finditer(listed):
        yield _plain(head[1]), head[2]


def _described(below: str) -> Iterator[tuple[str, str]]:
    for line in below.splitlines():
        if not line.startswith("  "):
            return
        if found := _COLUMN.match(line):
            yield _plain(found[1]), found[2]


def _note(column: ListedColumn, known: str) -> None:
    if ends := _RANGE.fullmatch(known):
        column.ends = ends[1], ends[2]
        return
    for value in _VALUE.finditer(known):
        text = value[2] or value[1].replace("''", "'")
        if not _MORE.fullmatch(text):
            column.values.append(text)


def _plain(name: str) -> str:
    return name.strip('"').replace('""', '"').lower()
