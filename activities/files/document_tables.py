"""The tables in documents, web pages, Word files and Markdown, as rows of texts.

`document_tables` takes the path of a document and yields its tables, by one reader for each kind of
file: `html_tables`, `word_tables`, `markdown_tables`. A cell that spans several rows or columns is
repeated in each of them (`SpannedRows`), as a reader sees it. A table of one column or one row is
layout and left out, and so is one that only arranges other tables.

The readers run in a child process. They take time in proportion to the file, and memory for the
texts of its tables.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree
from zipfile import ZipFile

from activities.files.document_files import (
    HEADING,
    TWICE,
    attribute,
    local_name,
    read_document,
    word_parts,
    word_texts,
)

_TABLES = 200  # of one document; more are navigation
_CELLS = 2_000_000  # of all tables of a document: some 200 MB of texts
_COLUMNS = 500
_CELL_CHARS = 4096
_SPAN = 65534  # of rows, as browsers have it
_ABOVE_CHARS = 300
_HEADER_ROWS = 3
_DEPTH = 20  # of tables within tables
_CHUNK = 1 << 16


class TooMany(Exception):
    """More tables or cells than are read; those found before are kept."""


class Span(NamedTuple):
    """A cell as it is written: its text, and the number of columns and rows that it spans."""

    text: str
    columns: int = 1
    rows: int = 1


@dataclass
class FoundTable:
    """A table: its rows, the text above it, and the known number of its header's rows, else 0.

    `repeats` is True if a cell spans several places, and its text is in each of them.
    """

    rows: list[list[str]] = field(default_factory=list)
    above: str = ""
    header: int = 0
    repeats: bool = False

    @property
    def is_data(self) -> bool:
        """False if it only looks like a table: layout, lists and boxes."""
        return sum(sum(map(bool, row)) > 1 for row in self.rows) > 1


class SpannedRows:
    """Places cells into rows, with the cells that span down from rows above.

    `repeats` is True once a cell fills more than one place.
    """

    def __init__(self) -> None:
        self.repeats = False
        self._down: dict[int, tuple[int, str]] = {}  # by column: how many rows more, and the text

    def row(self, cells: Iterable[Span]) -> list[str]:
        """Returns the next row."""
        row: list[str] = []
        down: dict[int, tuple[int, str]] = {}
        self._fill(row, down)
        for cell in cells:
            for _ in range(min(cell.columns, _COLUMNS - len(row))):
                if cell.rows > 1:
                    down[len(row)] = (cell.rows - 1, cell.text)
                row.append(cell.text)
            # Between cells only: a text that spans down into a wide cell is an error of the page.
            self._fill(row, down)
            self.repeats |= bool(cell.text) and (cell.columns > 1 or cell.rows > 1)

        # The last cells of a row may be missing where texts span down from the rows above.
        for column, (more, text) in self._down.items():
            if column < len(row):
                continue
            row += [""] * (column - len(row)) + [text]
            if more > 1:
                down[column] = (more - 1, text)
        self._down = down
        return row

    def _fill(self, row: list[str], down: dict[int, tuple[int, str]]) -> None:
        """Adds the texts that span down into the next places of a row."""
        while (reaching := self._down.get(len(row))) is not None:
            more, text = reaching
            if more > 1:
                down[len(row)] = (more - 1, text)
            row.append(text)


def document_tables(path: Path, out: Path) -> Iterator[FoundTable]:
    """Yields the tables of a document, read by its ending. Raises TooMany and Unreadable."""
    readers = {".html": html_tables, ".htm": html_tables, ".docx": word_tables}
    found = readers.get(path.suffix.lower(), markdown_tables)(path, out)
    cells = 0
    for number, table in enumerate(found):
        cells += sum(map(len, table.rows))
        if number >= _TABLES or cells > _CELLS:
            raise TooMany(f"of its tables the first {number} are read")
        yield table


# --- web pages ----------------------------------------------------------------------------------


@dataclass
class _OpenTable:
    """A table of a page while it is read."""

    above: str
    rows: list[list[Span]] = field(default_factory=list)
    headings: list[bool] = field(default_factory=list)  # of each row: it is one of names
    cells: list[tuple[Span, bool]] | None = None
    in_head: bool = False
    arranges: bool = False


_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)  # in the attribute `style`
_TITLE = re.compile("h[1-6]|caption")
_UNSEEN = {"script", "style", "template", "noscript", "title"}
_VOID = {  # elements without an end
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
}  # fmt: skip
_BREAKS = {"br", "p", "div", "li", "tr"}


class _PageReader:
    """Collects the tables of a page from the parser's events."""

    def __init__(self) -> None:
        self.found: list[FoundTable] = []
        self._open: list[_OpenTable] = []
        self._cell: list[str] | None = None
        self._span = (1, 1)
        self._unseen = 0  # elements within one that is not shown, itself included
        self._heading = ""
        self._title: list[str] | None = None
        self._cells = 0

    def start(self, tag: str, attributes: Any) -> None:
        """Handles the start of an element."""
        is_hidden = "hidden" in attributes or _HIDDEN.search(attributes.get("style", ""))
        if self._unseen or tag in _UNSEEN or is_hidden:
            self._unseen += tag not in _VOID
            return
        if tag == "table":
            self._begin_table(attributes)
        elif _TITLE.fullmatch(tag):
            self._title = []
        elif self._open:
            self._start_inside(self._open[-1], tag, attributes)

    def _start_inside(self, table: _OpenTable, tag: str, attributes: Any) -> None:
        if tag == "thead":
            table.in_head = True
        elif tag == "tr":
            table.cells = []
        elif tag in ("td", "th"):
            self._cell = []
            columns = _count(attributes.get("colspan"), _COLUMNS)
            self._span = columns, _count(attributes.get("rowspan"), _SPAN)
            if table.cells is None:
                table.cells = []
        elif tag in _BREAKS and self._cell is not None:
            self._cell.append(" ")

    def _begin_table(self, attributes: Any) -> None:
        for table in self._open:
            table.arranges = True
        if len(self._open) == _DEPTH:
            raise TooMany(f"its tables are nested more than {_DEPTH} deep")
        layout = attributes.get("role") in ("presentation", "none")
        self._open.append(_OpenTable(self._heading, arranges=layout))
        self._cell = None

    def end(self, tag: str) -> None:
        """Handles the end of an element."""
        if self._unseen:
            self._unseen -= tag not in _VOID
            return
        if self._title is not None and _TITLE.fullmatch(tag):
            self._end_title(tag)
        if not self._open:
            return
        table = self._open[-1]
        if tag == "table":
            self._end_table(self._open.pop())
        elif tag == "thead":
            table.in_head = False
        elif tag in ("td", "th") and self._cell is not None:
            text = _text("".join(self._cell))
            if table.cells is not None and len(table.cells) < _COLUMNS:
                table.cells.append((Span(text, *self._span), tag == "th"))
            self._cell = None
        elif tag == "tr" and table.cells is not None:
            self._end_row(table, table.cells)
            table.cells = None

    def _end_title(self, tag: str) -> None:
        words = _text("".join(self._title or []))[:_ABOVE_CHARS]
        self._title = None
        if tag != "caption":
            self._heading = words
        elif self._open and words:
            self._open[-1].above = words

    def _end_row(self, table: _OpenTable, cells: list[tuple[Span, bool]]) -> None:
        if table.arranges or not any(cell.text for cell, _ in cells):
            return
        self._cells += len(cells)
        if self._cells > _CELLS:
            raise TooMany(f"its tables have more than {_CELLS:,} cells")
        named = table.in_head or all(is_name for _, is_name in cells)
        table.rows.append([cell for cell, _ in cells])
        table.headings.append(named and len(cells) > 1)

    def _end_table(self, table: _OpenTable) -> None:
        if table.arranges:
            return
        grid = SpannedRows()
        width = max((sum(cell.columns for cell in row) for row in table.rows), default=0)
        rows: list[list[str]] = []
        for row in table.rows:
            # One text over the whole width is a title, or a heading between rows.
            has_whole_width = len(row) == 1 and row[0].columns >= width
            rows.append(grid.row([Span(row[0].text)] if has_whole_width else row))
        found = FoundTable(rows, table.above, _header(table.headings), grid.repeats)
        if found.is_data:
            self.found.append(found)

    def data(self, text: str) -> None:
        """Handles text."""
        if self._unseen:
            return
        if self._title is not None:
            self._title.append(text)
        elif self._cell is not None:
            self._cell.append(text)

    def close(self) -> None:
        """Handles the end of the page."""


def _count(written: str | None, most: int) -> int:
    """Returns the number in an attribute; 1 if there is none, or 0."""
    found = re.match(r"\s*(\d{1,5})", written or "", re.ASCII)
    count = int(found[1]) if found else 0
    return min(count or 1, most)


def _header(headings: list[bool]) -> int:
    """Returns the number of header rows at the top; 0 if the page does not mark them."""
    at_top = list(takewhile(bool, headings))
    if len(at_top) == len(headings) or len(at_top) > _HEADER_ROWS:
        return 0
    return len(at_top)


def html_tables(path: Path, out: Path) -> Iterator[FoundTable]:
    """Yields the tables of a web page, each with its caption, or the heading above it."""
    from lxml import etree

    markup = read_document(path, out)
    reader = _PageReader()
    # Its elements come one by one: the page is not in memory as a tree, and depth costs nothing.
    parser = etree.HTMLParser(target=reader, huge_tree=True)
    stopped: TooMany | None = None
    try:
        for start in range(0, len(markup), _CHUNK):
            parser.feed(markup[start : start + _CHUNK])
        parser.close()
    except TooMany as too_many:
        stopped = too_many
    yield from reader.found
    if stopped:
        raise stopped


# --- Word ---------------------------------------------------------------------------------------


@dataclass
class _WordTable:
    """An open table of a Word file; `reaching` has the texts of cells that span down, by column."""

    rows: list[list[str]] = field(default_factory=list)
    headings: list[bool] = field(default_factory=list)
    reaching: dict[int, str] = field(default_factory=dict)
    arranges: bool = False
    repeats: bool = False


def word_tables(path: Path, out: Path) -> Iterator[FoundTable]:
    """Yields the tables of a Word file."""
    with ZipFile(path) as archive:
        infos = word_parts(archive)
        if "document" in infos:
            yield from _word_tables(archive.open(infos["document"]))


def _word_tables(part: IO[bytes]) -> Iterator[FoundTable]:
    """Yields the tables of a part of a Word file, whose elements are read one by one."""
    open_tables: list[_WordTable] = []
    open_twice = 0
    for event, element in ElementTree.iterparse(part, ("start", "end")):
        name = local_name(element.tag)
        if event == "start":
            open_twice += name in TWICE
            if name == "tbl":
                _begin_word_table(open_tables)
            continue

        open_twice -= name in TWICE
        if name == "tbl":
            table = open_tables.pop()
            found = FoundTable(table.rows, "", _header(table.headings), table.repeats)
            if found.is_data and not table.arranges and not open_twice:
                yield found
            element.clear()
        elif name == "tr" and open_tables:
            if not open_tables[-1].arranges:
                _add_word_row(open_tables[-1], element)
            element.clear()  # it is in memory as a whole, the part is not
        elif name == "p" and not open_tables:
            element.clear()


def _begin_word_table(open_tables: list[_WordTable]) -> None:
    for table in open_tables:
        table.arranges = True
    if len(open_tables) == _DEPTH:
        raise TooMany(f"its tables are nested more than {_DEPTH} deep")
    open_tables.append(_WordTable())


def _add_word_row(table: _WordTable, row: ElementTree.Element) -> None:
    """Adds a row, with the texts that reach down into it from the cells above."""
    missing_before = _number(row.find("{*}trPr/{*}gridBefore"), default=0)
    texts = [""] * min(_COLUMNS, missing_before)
    reaching: dict[int, str] = {}
    cells = row.findall(".//{*}tc")
    for cell in cells:
        column = len(texts)
        text = _text("".join(word_texts(cell)))
        width = min(_COLUMNS, _number(cell.find("{*}tcPr/{*}gridSpan"), default=1))
        merge = cell.find("{*}tcPr/{*}vMerge")
        if merge is not None:
            # Of the cells of a span, the first has `restart`; those below another value, or none.
            if attribute(merge, "val") != "restart":
                text = table.reaching.get(column, text)
            reaching[column] = text
        table.repeats |= bool(text) and (width > 1 or merge is not None)
        texts += [text] * width

    table.reaching = reaching
    if not any(texts):
        return
    has_whole_width = len(cells) == 1 and len(texts) > 1 and len(set(texts)) == 1
    table.rows.append(texts[:1] if has_whole_width else texts[:_COLUMNS])
    table.headings.append(row.find("{*}trPr/{*}tblHeader") is not None)


def _number(element: ElementTree.Element | None, *, default: int) -> int:
    """Returns the number in an element's attribute `val`; the default if it is missing or 0."""
    written = attribute(element, "val")
    count = int(written) if re.fullmatch(r"\d{1,4}", written, re.ASCII) else 0
    return count or default


# --- Markdown -----------------------------------------------------------------------------------


# The line below the names of the columns: "|---|---|", ":--- | ---:"; not "a | b".
_RULE = re.compile(r" {0,3}\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")  # "```python", "~~~"
_BATCH = 500  # rows that the library sees at a time: it keeps some KiB of each cell


def markdown_tables(path: Path, out: Path) -> Iterator[FoundTable]:
    """Yields the tables of a Markdown text, each with the heading above it."""
    lines = read_document(path, out).split("\n")
    fence = heading = ""  # the fence that is open, and the heading above the line
    at = 0
    while at < len(lines):
        line = lines[at]
        opened = _FENCE.match(line)
        if fence:
            fence = "" if opened and opened[1].startswith(fence) else fence
        elif opened:
            fence = opened[1]
        elif found := HEADING.match(line):
            heading = _text(found[1])
        elif _begins_table(lines, at):
            end = at + 2
            while end < len(lines) and _is_row(lines[end]):
                end += 1
            table = FoundTable(_markdown_rows(lines[at:end]), heading[:_ABOVE_CHARS], header=1)
            if table.is_data:
                yield table
            at = end
            continue
        at += 1


def _begins_table(lines: list[str], at: int) -> bool:
    """True if a line has the names of columns: bars, and a rule below it."""
    if at + 1 == len(lines):
        return False
    below = lines[at + 1]
    return "|" in lines[at] and "|" in below and _RULE.fullmatch(below.rstrip("\r")) is not None


def _is_row(line: str) -> bool:
    """True if a line continues a table; an empty line, a heading or a fence ends it."""
    if "|" not in line:
        return False
    return not line.lstrip().startswith(("#", "```", "~~~", ">"))


def _markdown_rows(lines: list[str]) -> list[list[str]]:
    """Returns the cells of a table, split by the library, which knows which bars are text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    names_and_rule = lines[:2]
    rows: list[list[str]] = []
    for start in range(2, max(3, len(lines)), _BATCH):
        markdown = "\n".join([*names_and_rule, *lines[start : start + _BATCH]])
        batch: list[list[str]] = []
        for token in parser.parse(markdown):
            if token.type == "tr_open":
                batch.append([])
            elif token.type == "inline" and batch:
                batch[-1].append(_markdown_text(token.children))
        # The names of the columns come with each batch.
        rows += islice(batch, 1 if rows else 0, None)
    return [row[:_COLUMNS] for row in rows if any(row)]


def _markdown_text(tokens: Any) -> str:
    """Returns a cell's text without markup: links, bold, code."""
    parts: list[str] = []
    for token in tokens or []:
        is_break = token.type in ("softbreak", "hardbreak")
        parts.append(token.content or (" " if is_break else ""))
    return _text("".join(re.sub(r"<br\s*/?>", " ", part) for part in parts))


def _text(written: str) -> str:
    """Returns a cell's text on one line."""
    return " ".join(written[: 4 * _CELL_CHARS].split())[:_CELL_CHARS]
