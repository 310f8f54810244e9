"""The text of a document with its headings, by which parts are found, such as pages of a PDF.

Each reader writes the text to a file and returns `title`, number of `pages` if it has any, `chars`
and `file`.

The readers run in a child process. They import a library only for the kind of file that needs it,
because each process pays for it. They take time in proportion to the file, and memory for one copy
of the text.
"""

import re
import zipfile
import zlib
from collections.abc import Iterator
from html import unescape
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from activities.files.texts import Unreadable, as_utf8
from temporal_supervisor.supervision.base.json_object import JsonObject

PASSAGE_CHARS = 1500
PLACE_CHARS = 300  # of a heading, as a place: each passage below it repeats it
_TITLE_CHARS = 200
_WORD_BYTES = 64 << 20  # of XML: up to two minutes
# How a damaged or encrypted Word file fails, in its archive or in its XML.
_WORD_ERRORS = (
    OSError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
    ElementTree.ParseError,
)
_PAGES = 5000
_TEXT_CHARS = 20_000_000
HEADING = re.compile(r"(?:\A\s*|\n[ \t]*\n)#{1,6}[ \t]+(\S.*)")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # how Office files before 2007, and encrypted ones, begin
_WORD_PARTS = ("document", "footnotes", "endnotes")
_WORD_PART = re.compile(rf"word/(styles|{'|'.join(_WORD_PARTS)})\d*\.xml")
# Elements of a Word file that are a character each.
_SIGNS = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# Elements of a Word file whose text comes again: a shape for old programs, a text before it moved.
TWICE = {"Fallback", "moveFrom"}
# The tokens of a web page. `<p class=x>Tea &amp; milk<!-- old -->` has the tag `p`, the words
# `Tea`, `&amp;` and `milk`, a blank before each of the last two, and a comment, which is neither.
# `<script>if (a < b)</script>` is one token as a whole, too: nothing in it is a word.
# What nothing closes goes on to the end of the page, as in browsers. No branch gives back what it
# has read, so the time is linear; with the standard library's parser it is not.
_TOKEN = re.compile(
    r"""(?isx)
    <(?: !--.*?(?:-->|\Z)
       | (?P<raw>script|style|template|noscript|title)(?=[\s/>])[^>]*+>.*?(?:</(?P=raw)\s*+>|\Z)
       | (?P<tag>/?[a-z][^\s/>]*+)(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+>?
       | [!?/][^>]*+>?)
    | (?P<blank>\s++)
    | (?P<word>[^<\s]{1,4096}+|<)"""
)
_BLOCKS = {"p", "div", "table", "section", "article", "blockquote", "pre", "dt", "ul", "ol"}
_LINES = {"br", "tr", "li", "dd"}
_MARK_CHARS = 100  # a row may have any number of empty cells
_HEADING_MARKS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def pdf_document(path: Path, out: Path) -> JsonObject:
    """Returns the document of a PDF, with its pages as places. Raises Unreadable."""
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(path) as pdf:
            pages = len(pdf)
            if pages > _PAGES:
                raise Unreadable(f"it has {pages} pages, at most {_PAGES} are read")
            title = str(pdf.get_metadata_dict().get("Title") or "")
            document = _document_of(_pages(pdf), out)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("it is encrypted") from None
        raise Unreadable(f"it is no PDF that can be read: {error}") from None
    with Path(document["file"]).open(encoding="utf-8") as text:
        first = next((line for line in islice(text, 1, None) if line.strip()), "")
    return {**document, "title": (title or first).strip()[:_TITLE_CHARS], "pages": pages}


def _pages(pdf: Any) -> Iterator[str]:
    """Yields the pages that have text, each below its number as a heading. Raises Unreadable."""
    has_text = False
    for number in range(len(pdf)):
        text = pdf[number].get_textpage().get_text_bounded().replace("\r\n", "\n").strip()
        if text:
            has_text = True
            own = re.sub(r"(?m)^#", " #", text)  # no heading but the page's
            yield f"## p. {number + 1}\n\n{own}\n\n"
    if not has_text:
        raise Unreadable(f"its {len(pdf)} pages hold no text: it may be a scan")


def docx_document(path: Path, out: Path) -> JsonObject:
    """Returns the document of a Word file, with its headings as places. Raises Unreadable."""
    with path.open("rb") as file:
        if file.read(4) == _OLD_OFFICE:
            raise Unreadable("it is encrypted, or of a Word before 2007")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = word_parts(archive)
            levels = _levels(archive.open(infos["styles"])) if "styles" in infos else {}
            parts = (archive.open(infos[part]) for part in _WORD_PARTS if part in infos)
            texts = (_word_text(part, levels) for part in parts)
            return _document_of(chain.from_iterable(texts), out)
    except _WORD_ERRORS as error:
        raise Unreadable(f"it is no Word document that can be read: {error}") from None


def word_parts(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Returns the text parts of a Word file, and its styles, by name.

    Raises Unreadable if they are too large.
    """
    infos = {}
    for info in archive.infolist():
        part = _WORD_PART.fullmatch(info.filename)
        if part is not None:
            infos[part[1]] = info
    unpacked = sum(info.file_size for info in infos.values())
    if unpacked > _WORD_BYTES:
        room = _WORD_BYTES >> 20
        raise Unreadable(f"its text takes {unpacked >> 20} MiB, at most {room} are read")
    return infos


def html_document(path: Path, out: Path) -> JsonObject:
    """Returns the document of a web page."""
    return _document_of(_html_text(read_document(path, out)), out)


def plain_document(path: Path, out: Path) -> JsonObject:
    """Returns the document of a text or Markdown file."""
    text = read_document(path, out)
    file, title = out / "document.txt", HEADING.search(text)
    file.write_text(text, encoding="utf-8", errors="replace")
    return {
        "title": title[1][:_TITLE_CHARS].strip() if title else "",
        "pages": 0,
        "chars": len(text),
        "file": str(file),
    }


def text_passages(text: str) -> Iterator[tuple[str, str]]:
    """Yields the passages of a Markdown text, each with the heading above it."""
    has_passages = False
    for place, section in _sections(text):
        for part in _parts(section):
            has_passages = True
            yield place, part
    if has_passages:
        return
    for part in _parts(text):  # of headings alone: these are what can be found
        yield "", part


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yields the texts between the headings of a Markdown text, each with the heading above it."""
    place = ""
    start = 0
    for heading in HEADING.finditer(text):
        yield place, text[start : heading.start()]
        place = heading[1].strip()[:PLACE_CHARS]
        start = heading.end()
    yield place, text[start:]


def _parts(text: str) -> Iterator[str]:
    """Yields parts of a text, at most a passage long, cut between paragraphs, lines or words."""
    start = 0
    while start < len(text):
        end = start + PASSAGE_CHARS
        if end < len(text):
            half = start + PASSAGE_CHARS // 2
            cuts = (text.rfind(sign, half, end) for sign in ("\n\n", "\n", " "))
            end = next((cut for cut in cuts if cut > 0), end)
        part = text[start:end].strip()
        if part:
            yield part
        start = end


def read_document(path: Path, out: Path) -> str:
    """Returns the text of a file in any encoding. Raises Unreadable if it is empty or too long."""
    plain = as_utf8(path, out)
    with plain.open(encoding="utf-8", errors="replace") as file:
        text = file.read(_TEXT_CHARS + 1)
    if plain != path:
        plain.unlink()
    if len(text) > _TEXT_CHARS:
        raise Unreadable(f"it has more than {_TEXT_CHARS:,} characters: pass a part of it")
    if not text.strip():
        raise Unreadable("it holds no text")
    return text


def _document_of(pieces: Iterator[str], out: Path) -> JsonObject:
    """Returns the document of a text, which is written first, so that memory holds it once."""
    plain = out / "plain.md"
    with plain.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces)
    document = plain_document(plain, out)
    plain.unlink()
    return document


def _html_text(markup: str) -> Iterator[str]:
    r"""Yields the text of a page, with headings as Markdown and bars between cells.

    Tags and blanks only set the `gap` and the `mark` that are written before the next word:
    `<p>Tea</p> <p>4 EUR` becomes `\n\nTea\n\n4 EUR`, with one gap for the three tokens after `Tea`,
    and `<h2>Prices</h2><tr><td>Tea<td>4` becomes `\n\n## Prices\n\n | Tea | 4`.
    """
    gap = mark = ""
    for token in _TOKEN.finditer(markup):
        if token["word"]:
            yield gap + mark + unescape(token["word"])
            gap = mark = ""
            continue
        if token["blank"]:
            gap = gap or " "
            continue

        tag = (token["tag"] or "").lower()
        name = tag.removeprefix("/")
        if name in _HEADING_MARKS:
            gap = "\n\n"
            mark = _HEADING_MARKS.get(tag, "")  # none after the end of a heading
        elif name in _BLOCKS:
            gap = "\n\n"
        elif tag in _LINES:
            gap = gap if "\n" in gap else "\n"
        elif tag in ("td", "th") and len(mark) < _MARK_CHARS:
            mark += " | "


def _levels(styles: IO[bytes]) -> dict[str, int]:
    """Returns the levels of heading styles by id.

    Ids are in the language of the program, as in `{"Titel": 1, "berschrift2": 2}`; names are not.
    """
    levels: dict[str, int] = {}
    for style in ElementTree.parse(styles).getroot().findall("{*}style"):
        name = attribute(style.find("{*}name"), "val").lower()
        level = re.fullmatch(r"heading ([1-9])|title", name)
        if level:
            levels[attribute(style, "styleId")] = min(6, int(level[1] or 1))
    return levels


def _word_text(part: IO[bytes], levels: dict[str, int]) -> Iterator[str]:
    """Yields the paragraphs, list items and table rows of a part of a Word file as Markdown.

    A table in a cell of another one is part of that cell.
    """
    open_tables = open_twice = 0
    for event, element in ElementTree.iterparse(part, ("start", "end")):
        name = local_name(element.tag)
        step = 1 if event == "start" else -1
        if name == "tbl":
            open_tables += step
        if name in TWICE:
            open_twice += step
        if event == "start":
            continue

        if name == "tbl" and not open_tables:
            yield "\n"
        is_row = name == "tr" and open_tables == 1
        is_paragraph = name == "p" and not open_tables
        if not is_row and not is_paragraph:
            continue
        line = "" if open_twice else "".join(word_texts(element)).strip(" \n")
        if line and is_row:
            yield f"{line}\n"
        elif line:
            yield f"{_paragraph_mark(element, levels)}{line}\n\n"
        element.clear()  # it is in memory as a whole, the part is not


def _paragraph_mark(element: ElementTree.Element, levels: dict[str, int]) -> str:
    """Returns the Markdown sign of a heading or of an item of a list; empty for others."""
    style = attribute(element.find("{*}pPr/{*}pStyle"), "val")
    if style in levels:
        return "#" * levels[style] + " "
    is_item = element.find("{*}pPr/{*}numPr") is not None
    return "- " if is_item else ""


def word_texts(element: ElementTree.Element) -> Iterator[str]:
    """Yields the texts in an element, without settings and texts that are repeated elsewhere."""
    for child in element:
        name = local_name(child.tag)
        if name == "t":
            yield child.text or ""
        elif name not in TWICE and not name.endswith("Pr"):
            yield " | " if name == "tc" else _SIGNS.get(name, "")
            yield from word_texts(child)
            yield " " if name == "p" else ""


def attribute(element: ElementTree.Element | None, name: str) -> str:
    """Returns an attribute by its name without namespace; empty if it is missing."""
    found = {} if element is None else element.attrib
    return next((value for key, value in found.items() if local_name(key) == name), "")


def local_name(name: str) -> str:
    """Returns the name of an element without its namespace."""
    return name.rpartition("}")[2]
