"""The tables in a text: Markdown, as the tools for SQL show their rows and as models write them."""

import re
from bisect import bisect_right
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n?")
_RULE = re.compile(r"\s*+\|[\s:|-]*+")
_EDGE = re.compile(r"(?<!\\)\|")


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
    """Returns the tables of a text in their order; a table has a head, a rule below it, and rows."""
    tables = list[MarkdownTable]()
    head, columns, rows = TableRow(0, 0, (), ()), None, list[TableRow]()
    for match in _LINE.finditer(text):
        line = match[0]
        if not line.lstrip().startswith("|"):
            if columns is not None and rows:
                tables.append(MarkdownTable(columns, tuple(rows)))
            columns, rows, head = None, [], TableRow(0, 0, (), ())
        elif columns is None and head.cells and _RULE.fullmatch(line) and "-" in line:
            columns = head.cells
        elif columns is None:
            head = _row(line, match.start())
        else:
            rows.append(_row(line, match.start()))
    return tables


def _row(line: str, start: int) -> TableRow:
    edges = [match.start() for match in _EDGE.finditer(line.rstrip())]
    ends = [*edges[1:], *([] if line.rstrip().endswith("|") and len(edges) > 1 else [len(line.rstrip())])]
    cells = [line[edge + 1 : end].strip().replace("\\|", "|") for edge, end in zip(edges, ends, strict=False)]
    return TableRow(start, start + len(line), tuple(cells), tuple(start + edge + 1 for edge in edges))
