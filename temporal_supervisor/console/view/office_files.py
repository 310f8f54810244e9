"""Answers as files of office programs: tables as Excel workbooks, texts as Word documents."""

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.token import Token

from temporal_supervisor.console.base.terminal import safe

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph
    from xlsxwriter.worksheet import Worksheet

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
_MOST_DIGITS = 15  # a spreadsheet keeps no more of a number
_GUARDED = re.compile(r"'(?=\s*[=@＝＠+＋\-－])")
_CELL_CHARS = 32_767  # of a workbook
_WIDEST = 60  # characters of a column
_DEEPEST_HEADING = 9
_DEEPEST_LIST = 3  # the template has no styles below


def workbook(table: bytes) -> bytes:
    """Returns our CSV as a workbook: numbers as numbers, no text as a formula."""
    from xlsxwriter.workbook import Workbook  # a second, for this ending alone

    rows = list(csv.reader(io.StringIO(table.decode("utf-8", "replace"))))
    made = io.BytesIO()
    with Workbook(made, {"in_memory": True}) as book:
        sheet = book.add_worksheet("answer")
        bold = book.add_format({"bold": True})
        for at, name in enumerate(rows[0]):
            sheet.write_string(0, at, _text(name), bold)
        for number, row in enumerate(rows[1:], 1):
            for at, cell in enumerate(row):
                _write_cell(sheet, number, at, cell)
        for at in range(len(rows[0])):
            sheet.set_column(at, at, _width([row[at] for row in rows if at < len(row)]))
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, max(1, len(rows) - 1), len(rows[0]) - 1)
    return made.getvalue()


def _write_cell(sheet: "Worksheet", row: int, column: int, cell: str) -> None:
    """Writes a cell, as a number if a spreadsheet keeps all of its digits."""
    if not cell:
        return
    is_number = _NUMBER.fullmatch(cell) and sum(map(str.isdigit, cell)) <= _MOST_DIGITS
    if is_number:
        sheet.write_number(row, column, float(cell))
        return
    sheet.write_string(row, column, _text(cell))


def _text(cell: str) -> str:
    """Returns the text of a cell without the apostrophe that protects it in CSV."""
    text = safe(cell)
    return (text[1:] if _GUARDED.match(text) else text)[:_CELL_CHARS]


def _width(cells: Sequence[str]) -> int:
    return min(_WIDEST, max((len(cell) for cell in cells), default=0) + 2)


def word_document(markdown: str, title: str) -> bytes:
    """Returns Markdown as a Word document: headings, lists, tables, emphasis."""
    import docx  # two seconds, for this ending alone

    document = docx.Document()
    document.core_properties.title = safe(title)[:255]
    document.core_properties.author = "temporal-supervisor"
    document.core_properties.comments = ""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    _Written(document).write_blocks(parser.parse(safe(markdown)))
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


class _Written:
    """Writes the tokens of a text into a document, one after the other."""

    def __init__(self, document: "Document") -> None:
        self._document = document
        self._lists: list[str] = []
        self._heading = 0
        self._rows: list[list[Token]] = []

    def write_blocks(self, tokens: Sequence[Token]) -> None:
        """Writes all blocks of a text."""
        for token in tokens:
            if token.type == "inline":
                self._write_inline(token)
            elif token.type in ("fence", "code_block"):
                self._document.add_paragraph(token.content.rstrip("\n"), style="No Spacing")
            elif token.type == "table_close":
                self._write_table()
            else:
                self._enter_or_leave(token)

    def _enter_or_leave(self, token: Token) -> None:
        """Handles the beginning or the end of a list, a heading or a row."""
        match token.type:
            case "bullet_list_open":
                self._lists.append("Bullet")
            case "ordered_list_open":
                self._lists.append("Number")
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "heading_open":
                self._heading = int(token.tag[1:])
            case "heading_close":
                self._heading = 0
            case "tr_open":
                self._rows.append([])

    def _write_inline(self, token: Token) -> None:
        """Writes the text of a block; a cell's text is kept for its table."""
        if self._rows:
            self._rows[-1].append(token)
            return
        if self._heading:
            paragraph = self._document.add_heading(level=min(self._heading, _DEEPEST_HEADING))
        else:
            paragraph = self._document.add_paragraph(style=self._list_style())
        _write_runs(paragraph, token)

    def _list_style(self) -> str | None:
        if not self._lists:
            return None
        depth = min(len(self._lists), _DEEPEST_LIST)
        return f"List {self._lists[-1]}" + (f" {depth}" if depth > 1 else "")

    def _write_table(self) -> None:
        columns = max(map(len, self._rows))
        table = self._document.add_table(len(self._rows), columns, style="Table Grid")
        for row, cells in zip(table.rows, self._rows, strict=True):
            for place, token in zip(row.cells, cells, strict=False):
                _write_runs(place.paragraphs[0], token)
        self._rows = []


def _write_runs(paragraph: "Paragraph", token: Token) -> None:
    """Writes a line of text with emphasis; links become their text and URL."""
    bold = italic = False
    address = ""
    for part in token.children or []:
        if part.type in ("strong_open", "strong_close"):
            bold = part.type == "strong_open"
        elif part.type in ("em_open", "em_close"):
            italic = part.type == "em_open"
        elif part.type == "link_open":
            address = str(part.attrGet("href") or "")
        elif part.type == "link_close":
            paragraph.add_run(f" ({address})" if address else "")
        elif _run_text(part):
            run = paragraph.add_run(_run_text(part))
            run.bold = bold or None
            run.italic = italic or None


def _run_text(part: Token) -> str:
    if part.type == "softbreak":
        return " "
    if part.type == "hardbreak":
        return "\n"
    return part.content
