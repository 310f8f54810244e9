"""The text of a document with the places in it: pages of a PDF, headings of anything else.

Runs in a child process. Imports a library only for the kind of file that needs it: each process pays for it.
"""

import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from activities.files.table_files import Unreadable, as_utf8

Json = dict[str, Any]

PASSAGE_CHARS = 1500
_WORD_BYTES = 16 << 20  # of XML: its reader takes some thirty times as much memory
_PAGES = 5000
_TEXT_CHARS = 20_000_000
_TEXT_BYTES = 40_000_000  # what is read at once
_HEADING = re.compile(r"#{1,6}[ \t]+(\S.*)")
_BLOCKS = {"p", "div", "li", "tr", "br", "table", "section", "article", "blockquote", "pre", "dt", "dd"}
_HIDDEN = {"script", "style", "head", "template", "noscript"}


def pdf_document(path: Path, out: Path) -> Json:
    """Returns the document of a PDF: a passage for each page, or several for a long one."""
    import pypdfium2

    passages: list[tuple[str, str]] = []
    chars = 0
    try:
        with pypdfium2.PdfDocument(path) as pdf:
            pages = len(pdf)
            if pages > _PAGES:
                raise Unreadable(f"it has {pages} pages, at most {_PAGES} are read")
            title = str(pdf.get_metadata_dict().get("Title") or "").strip()
            for number in range(pages):
                page = pdf[number]
                text_page = page.get_textpage()
                text = text_page.get_text_bounded().replace("\r\n", "\n").strip()
                text_page.close()
                page.close()
                passages += [(f"p. {number + 1}", part) for part in _parts(text)]
                if (chars := chars + len(text)) > _TEXT_CHARS:
                    raise Unreadable(f"its first {number + 1} pages have {chars:,} characters, at most {_TEXT_CHARS:,}")
    except pypdfium2.PdfiumError as error:
        encrypted = "password" in str(error).lower()
        raise Unreadable("it is encrypted" if encrypted else f"it is no PDF that can be read: {error}") from None
    if not passages:
        raise Unreadable(f"its {pages} pages hold no text: it may be a scan")
    first = next((line.strip() for line in passages[0][1].splitlines() if line.strip()), "")
    return _document(title or first, passages, pages)


def docx_document(path: Path, out: Path) -> Json:
    """Returns the document of a Word file, its headings as places."""
    import mammoth

    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist() if info.filename.endswith(".xml"))
        if unpacked > _WORD_BYTES:
            raise Unreadable(f"its text takes {unpacked >> 20} MiB, at most {_WORD_BYTES >> 20} are read")
        with path.open("rb") as file:
            html = mammoth.convert_to_html(file, convert_image=mammoth.images.img_element(lambda image: {})).value
    except Unreadable:
        raise
    except Exception as error:  # the library and what it stands on raise whatever they like for a broken file
        raise Unreadable(f"it is no Word document that can be read: {type(error).__name__}") from None
    return text_document(_plain(html))


def html_document(path: Path, out: Path) -> Json:
    """Returns the document of a web page."""
    return text_document(_plain(_read(path, out)))


def plain_document(path: Path, out: Path) -> Json:
    """Returns the document of a text or Markdown file."""
    return text_document(_read(path, out))


def text_document(text: str) -> Json:
    """Returns the document of a text with Markdown headings. Raises Unreadable if it is empty or too long."""
    if not text.strip():
        raise Unreadable("it is empty")
    if len(text) > _TEXT_CHARS:
        raise Unreadable(f"it has {len(text):,} characters, at most {_TEXT_CHARS:,} are read")
    passages: list[tuple[str, str]] = []
    heading, title, room = "", "", 0
    for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        mark = _HEADING.match(block)
        if mark:
            heading, room = mark[1].strip(), 0
            title = title or heading
            block = block[mark.end() :].strip()
        for part in _parts(block):
            if len(part) < room:
                passages[-1] = (heading, f"{passages[-1][1]}\n\n{part}")
            else:
                passages.append((heading, part))
            room = PASSAGE_CHARS - len(passages[-1][1])
    return _document(title, passages or [("", text)], 0) | {"text": text}


def _document(title: str, passages: list[tuple[str, str]], pages: int) -> Json:
    return {"title": re.sub(r"\s+", " ", title).strip()[:200], "passages": passages, "pages": pages}


def _parts(text: str) -> list[str]:
    """Returns a text in parts of at most about a passage's length, cut between paragraphs, lines or words."""
    parts, start = [], 0
    while start < len(text):
        end = start + PASSAGE_CHARS
        if end < len(text):
            cut = max(text.rfind(sign, start + PASSAGE_CHARS // 2, end) for sign in ("\n\n", "\n", " "))
            end = cut if cut > 0 else end
        if part := text[start:end].strip():
            parts.append(part)
        start = end
    return parts


def _read(path: Path, out: Path) -> str:
    if (size := path.stat().st_size) > _TEXT_BYTES:
        raise Unreadable(f"it has {size / 1e6:,.0f} MB of text, at most {_TEXT_BYTES / 1e6:,.0f} are read")
    plain = as_utf8(path, out)
    text = plain.read_text(encoding="utf-8", errors="replace")
    if plain != path:
        plain.unlink()
    return text


def _plain(html: str) -> str:
    parser = _Plain()
    parser.feed(html)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.parts)).strip()


class _Plain(HTMLParser):
    """The text of a page, headings as Markdown and cells of a table divided by bars."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        if re.fullmatch("h[1-6]", tag):
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag in _BLOCKS:
            self.parts.append("\n" if tag in ("br", "tr", "li", "dd") else "\n\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN and self._hidden > 0
        if re.fullmatch("h[1-6]", tag) or tag in ("p", "table", "ul", "ol"):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(re.sub(r"\s+", " ", data))
