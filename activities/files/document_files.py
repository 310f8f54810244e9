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

Json = dict[str, Any]

PASSAGE_CHARS = 1500
PLACE_CHARS = 300  # of a heading, as a place: each passage below it repeats it
_TITLE_CHARS = 200
_WORD_BYTES = 64 << 20  # of XML: up to two minutes
_PAGES = 5000
_TEXT_CHARS = 20_000_000
HEADING = re.compile(r"(?:\A\s*|\n[ \t]*\n)#{1,6}[ \t]+(\S.*)")
_WORD_PARTS = ("document", "footnotes", "endnotes")
_WORD_PART = re.compile(rf"word/(styles|{'|'.join(_WORD_PARTS)})\d*\.xml")
_SIGNS = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
TWICE = {"Fallback", "moveFrom"}  # their text stands elsewhere, too
# Of a web page: each branch takes what it has looked at, to the end of the text where nothing closes it, as browsers
# do. So the time is linear, which that of the standard library's parser is not.
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


def pdf_document(path: Path, out: Path) -> Json:
    """Returns the document of a PDF, with its pages as places. Raises Unreadable."""
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(path) as pdf:
            if (pages := len(pdf)) > _PAGES:
                raise Unreadable(f"it has {pages} pages, at most {_PAGES} are read")
            title = str(pdf.get_metadata_dict().get("Title") or "")
            document = _document_of(_pages(pdf), out)
    except pypdfium2.PdfiumError as error:
        encrypted = "password" in str(error).lower()
        raise Unreadable("it is encrypted" if encrypted else f"it is no PDF that can be read: {error}") from None
    with Path(document["file"]).open(encoding="utf-8") as text:
        first = next((line for line in islice(text, 1, None) if line.strip()), "")
    return {**document, "title": (title or first).strip()[:_TITLE_CHARS], "pages": pages}


def _pages(pdf: Any) -> Iterator[str]:
    empty = True
    for number in range(len(pdf)):
        if text := pdf[number].get_textpage().get_text_bounded().replace("\r\n", "\n").strip():
            own = re.sub(r"(?m)^#", " #", text)  # no heading but the page's
            yield f"## p. {number + 1}\n\n{own}\n\n"
            empty = False
    if empty:
        raise Unreadable(f"its {len(pdf)} pages hold no text: it may be a scan")


def docx_document(path: Path, out: Path) -> Json:
    """Returns the document of a Word file, with its headings as places. Raises Unreadable."""
    with path.open("rb") as file:
        if file.read(4) == b"\xd0\xcf\x11\xe0":
            raise Unreadable("it is encrypted, or of a Word before 2007")
    try:
        with zipfile.ZipFile(path) as archive:
            infos = word_parts(archive)
            levels = _levels(archive.open(infos["styles"])) if "styles" in infos else {}
            parts = (archive.open(infos[part]) for part in _WORD_PARTS if part in infos)
            return _document_of((piece for part in parts for piece in _word_text(part, levels)), out)
    except (OSError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error, ElementTree.ParseError) as error:
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
    if (unpacked := sum(info.file_size for info in infos.values())) > _WORD_BYTES:
        raise Unreadable(f"its text takes {unpacked >> 20} MiB, at most {_WORD_BYTES >> 20} are read")
    return infos


def html_document(path: Path, out: Path) -> Json:
    """Returns the document of a web page."""
    return _document_of(_html_text(read_document(path, out)), out)


def plain_document(path: Path, out: Path) -> Json:
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
    place, start, empty = "", 0, True
    for mark in chain(HEADING.finditer(text), [None]):
        for part in _parts(text[start : mark.start() if mark else None]):
            yield place, part
            empty = False
        if mark:
            place, start = mark[1].strip()[:PLACE_CHARS], mark.end()
    yield from (("", part) for part in _parts(text) if empty)


def _parts(text: str) -> Iterator[str]:
    """Yields parts of a text of about a passage's length, cut between paragraphs, lines or words."""
    start = 0
    while start < len(text):
        end = start + PASSAGE_CHARS
        if end < len(text):
            cuts = (text.rfind(sign, start + PASSAGE_CHARS // 2, end) for sign in ("\n\n", "\n", " "))
            end = next((cut for cut in cuts if cut > 0), end)
        if part := text[start:end].strip():
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


def _document_of(pieces: Iterator[str], out: Path) -> Json:
    """Returns the document of a text, which is written first, so that memory holds it once."""
    plain = out / "plain.md"
    with plain.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces)
    document = plain_document(plain, out)
    plain.unlink()
    return document


def _html_text(markup: str) -> Iterator[str]:
    """Yields the text of a page, with headings as Markdown and bars between cells."""
    gap = mark = ""
    for token in _TOKEN.finditer(markup):
        if word := token["word"]:
            yield gap + mark + (unescape(word) if "&" in word else word)
            gap = mark = ""
        elif token["blank"]:
            gap = gap or " "
        elif tag := (token["tag"] or "").lower():
            name = tag.removeprefix("/")
            if re.fullmatch("h[1-6]", name):
                gap, mark = "\n\n", "" if tag != name else f"{'#' * int(name[1])} "
            elif name in _BLOCKS:
                gap = "\n\n"
            elif tag in _LINES:
                gap = gap if "\n" in gap else "\n"
            elif tag in ("td", "th"):
                mark += " | " if len(mark) < 100 else ""


def _levels(styles: IO[bytes]) -> dict[str, int]:
    """Returns the levels of heading styles by id; ids are in the language of the program."""
    levels = dict[str, int]()
    for style in ElementTree.parse(styles).getroot().findall("{*}style"):
        if level := re.fullmatch(r"heading ([1-9])|title", attribute(style.find("{*}name"), "val").lower()):
            levels[attribute(style, "styleId")] = min(6, int(level[1] or 1))
    return levels


def _word_text(part: IO[bytes], levels: dict[str, int]) -> Iterator[str]:
    """Yields the paragraphs, list items and table rows of a part of a Word file as Markdown."""
    tables = twice = 0
    for event, element in ElementTree.iterparse(part, ("start", "end")):
        name, step = local_name(element.tag), 1 if event == "start" else -1
        tables += step * (name == "tbl")
        twice += step * (name in TWICE)
        if event == "end" and ((name == "p" and not tables) or (name == "tr" and tables == 1)):
            mark = "#" * levels.get(attribute(element.find("{*}pPr/{*}pStyle"), "val"), 0)
            mark = mark or "-" * (element.find("{*}pPr/{*}numPr") is not None)
            if not twice and (line := "".join(word_texts(element)).strip(" \n")):
                yield f"{line}\n" if name == "tr" else f"{mark} {line}\n\n".lstrip(" ")
            element.clear()  # it is in memory as a whole, the part is not
        elif event == "end" and name == "tbl" and not tables:
            yield "\n"


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
