"""The tables in a text: Markdown, as the tools for SQL show their rows and as models write them."""

import re
from bisect import bisect_right
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n?")
_RULE = re.compile(r"\s*+\|[\s:|-]*+")  # "|---|:--|"
_EDGE = re.compile(r"(?<!\\)\|")  # of a cell; not the escaped one in "a \| b"


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its cells, and where each of them begins in the text."""

    start: int
    end: int
    cells: tuple[str, ...]
    begins: tuple[int, ...]

    def column_at(self, place: int) -> int:
        """Returns the number of the column in which a place of the text lies."""
        return max(0, bisect_right(self.begins, place) - 1)


@dataclass(frozen=True, eq=False)
class MarkdownTable:
    """The head and the rows of a table."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]


def read_tables(text: str) -> list[MarkdownTable]:
    """Returns the tables of a text in their order: each has a head, a rule below it, and rows."""
    tables: list[MarkdownTable] = []
    head: tuple[str, ...] = ()  # the cells of the line above
    columns: tuple[str, ...] | None = None  # once the rule below the head is read
    rows: list[TableRow] = []
    for match in _LINE.finditer(text):
        line = match[0]
        if not line.lstrip().startswith("|"):
            if columns is not None and rows:
                tables.append(MarkdownTable(columns, tuple(rows)))
            head = ()
            columns = None
            rows = []
        elif columns is not None:
            rows.append(_row(line, match.start()))
        elif head and _RULE.fullmatch(line) and "-" in line:
            columns = head
        else:
            head = _row(line, match.start()).cells
    return tables


def _row(line: str, start: int) -> TableRow:
    """Returns the row in a line of a text; `start` is the place where the line begins."""
    written = line.rstrip()
    edges = [match.start() for match in _EDGE.finditer(written)]
    ends = edges[1:]
    has_last_edge = written.endswith("|") and len(edges) > 1
    if not has_last_edge:
        ends.append(len(written))
    spans = zip(edges, ends, strict=False)
    cells = [line[edge + 1 : end].strip().replace("\\|", "|") for edge, end in spans]
    begins = [start + edge + 1 for edge in edges]
    return TableRow(start, start + len(line), tuple(cells), tuple(begins))
