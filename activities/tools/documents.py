"""A team's documents: `search_documents` finds passages, `read_document` returns one whole."""

import re
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from activities.tools.files import Fingerprint, files_inside, fingerprint
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.base.text import clean, one_line
from supervision.contract.base import StrictModel

_SEARCH_HITS = 10
_SEARCH_TERMS = 32  # words of a query that count
PASSAGE_CHARS = 1500  # one search hit


class DocumentOptions(StrictModel):
    """Options of both kinds: which files are documents. A document's id is its file's name without the ending."""

    documents: str


class SearchDocuments(Arguments):
    """One search."""

    query: Annotated[str, Field(min_length=1, max_length=1000, description="Words to look for, in any order.")]
    limit: Annotated[int, Field(ge=1, le=_SEARCH_HITS, description="Most passages to return.")] = 3


class ReadDocument(Arguments):
    """One document."""

    document_id: Annotated[str, Field(min_length=1, max_length=300, description="An id that search_documents showed.")]


@dataclass(frozen=True)
class Document:
    """`title` is the first heading, else the id."""

    id: str
    title: str
    text: str

    def passages(self) -> list[tuple[str, str]]:
        """Returns (heading, text) of each section, long ones split at paragraphs."""
        passages: list[tuple[str, str]] = []
        heading = ""
        room = 0
        for block in re.split(r"\n\s*\n", self.text):
            mark = re.match(r"#{1,6}\s+(.+)", block)
            if mark:
                heading, room = mark[1].strip(), 0
                block = block[mark.end() :].strip()
                if not block:
                    continue
            if len(block) < room:
                passages[-1] = (heading, f"{passages[-1][1]}\n\n{block}")
            else:
                passages.append((heading, block))
            room = PASSAGE_CHARS - len(passages[-1][1])
        return passages


@dataclass(frozen=True)
class Hit:
    """The best passage of one document."""

    document: Document
    passage: str


class Library:
    """Documents with a full-text index in memory."""

    def __init__(self, files: list[Path]) -> None:
        self.documents: dict[str, Document] = {}
        # Its statements are single calls, so sharing the connection between threads is safe.
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(
            "CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, title, heading, text, tokenize='porter unicode61')"
        )
        for path in files:
            text = clean(path.read_text(encoding="utf-8", errors="replace"))
            first = re.search(r"^#\s+(.+)$", text, re.MULTILINE)
            document = Document(path.stem, one_line(first[1] if first else path.stem, limits.SENTENCE_BYTES), text)
            self.documents[document.id] = document
            self._index.executemany(
                "INSERT INTO passages VALUES (?, ?, ?, ?)",
                [(document.id, document.title, heading, passage) for heading, passage in document.passages()],
            )

    def search(self, query: str, limit: int) -> list[Hit]:
        """Returns the best passage of each of the best documents; none if no word occurs."""
        words = re.findall(r"\w+", query)[:_SEARCH_TERMS]
        match = " OR ".join(f'"{word}"' for word in words)  # quoted: nothing of it is FTS syntax
        hits: dict[str, Hit] = {}
        if match:
            rows = self._index.execute(
                "SELECT id, text FROM passages WHERE passages MATCH ? ORDER BY bm25(passages, 0, 2, 2, 1)", [match]
            )
            for document_id, passage in rows.fetchall():
                hits.setdefault(document_id, Hit(self.documents[document_id], passage))
        return list(hits.values())[:limit]

    def catalogue(self) -> str:
        """Returns the list of ids and titles."""
        return "\n".join(f"[{document.id}] {document.title}" for document in self.documents.values())


_libraries: dict[tuple[Path, str], tuple[Fingerprint, Library]] = {}
_libraries_lock = threading.Lock()


def library(folder: Path, pattern: str) -> Library:
    """Returns the documents that `pattern` matches in `folder`: read once per process, again once a file changes.

    Raises ValueError as `files_inside` does.
    """
    files = files_inside(folder, pattern)
    current = fingerprint(files)
    with _libraries_lock:
        known = _libraries.get((folder, pattern))
        if known is None or known[0] != current:
            known = _libraries[folder, pattern] = (current, Library(files))
    return known[1]


def search_documents(name: str, options: dict[str, Any], folder: Path) -> Tool[SearchDocuments]:
    """Returns a tool of the kind `document_search`. Raises ValueError on bad options or files."""
    pattern = DocumentOptions.model_validate(options).documents
    library(folder, pattern)

    async def run(arguments: SearchDocuments, context: ToolContext) -> ToolOutput:
        documents = library(folder, pattern)
        hits = documents.search(arguments.query, arguments.limit)
        if not hits:
            return ToolOutput(f"No passage contains any of these words. The documents are:\n{documents.catalogue()}")
        text = "\n\n".join(f"[{hit.document.id}] {hit.document.title}: {hit.passage[:PASSAGE_CHARS]}" for hit in hits)
        return ToolOutput(text, sources=[hit.document.id for hit in hits])

    description = (
        "Searches the team's documents and returns the best passage of each document found, with the document's id. "
        "Use read_document to read all of one."
    )
    return Tool(name, description, SearchDocuments, run, catalogue=_titles(folder, pattern))


def read_document(name: str, options: dict[str, Any], folder: Path) -> Tool[ReadDocument]:
    """Returns a tool of the kind `document_read`. Raises ValueError on bad options or files."""
    pattern = DocumentOptions.model_validate(options).documents
    library(folder, pattern)

    async def run(arguments: ReadDocument, context: ToolContext) -> ToolOutput:
        documents = library(folder, pattern)
        document = documents.documents.get(arguments.document_id)
        if document is None:
            raise ToolMisuse(f"there is no document of that id. The documents are:\n{documents.catalogue()}")
        return ToolOutput(document.text, sources=[document.id])

    description = "Returns the whole text of one document."
    return Tool(name, description, ReadDocument, run, catalogue=_titles(folder, pattern))


def _titles(folder: Path, pattern: str) -> Callable[[], Awaitable[dict[str, str]]]:
    async def titles() -> dict[str, str]:
        documents = library(folder, pattern).documents.values()
        return {f"document {document.id}": f"document [{document.id}] {document.title}" for document in documents}

    return titles
