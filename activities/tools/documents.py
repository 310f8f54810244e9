"""Documents: `search_documents` finds passages, `read_document` returns a whole document."""

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from activities.tools.files import FileData, Files
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

    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1000,
            description="Keywords, such as the names and terms that the passage must contain. "
            "Do not write a question: each word is looked for by itself.",
        ),
    ]
    limit: Annotated[
        int,
        Field(
            ge=1,
            le=_SEARCH_HITS,
            description=f"The largest number of passages to return, from 1 to {_SEARCH_HITS}. The default is 3.",
        ),
    ] = 3


class ReadDocument(Arguments):
    """One document."""

    document_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=300,
            description="The id of the document, as a search shows it in square brackets, without the brackets.",
        ),
    ]


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


class Library:
    """Documents with a full-text index in memory."""

    def __init__(self, files: list[Path]) -> None:
        self.documents: dict[str, Document] = {}
        # It is filled in one thread and read in another, never at the same time.
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

    def close(self) -> None:
        """Frees the index."""
        self._index.close()

    def search(self, query: str, limit: int) -> list[tuple[Document, str]]:
        """Returns the best documents, each with its best passage; none if no word occurs."""
        words = re.findall(r"\w+", query)[:_SEARCH_TERMS]
        match = " OR ".join(f'"{word}"' for word in words)  # quoted: nothing of it is FTS syntax
        passages: dict[str, str] = {}
        if match:
            rows = self._index.execute(
                "SELECT id, text FROM passages WHERE passages MATCH ? ORDER BY bm25(passages, 0, 2, 2, 1)", [match]
            )
            for document_id, passage in rows.fetchall():
                passages.setdefault(document_id, passage)
        return [(self.documents[name], passage) for name, passage in list(passages.items())[:limit]]

    def catalogue(self) -> str:
        """Returns the list of ids and titles."""
        return "\n".join(f"[{document.id}] {document.title}" for document in self.documents.values())


class DocumentTools:
    """The tools over some documents. `tools` gives the kind of each tool by its name."""

    def __init__(self, files: Files, tools: dict[str, str], options: DocumentOptions) -> None:
        self._library = FileData(files, Library)
        self._tools = tools

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools. Raises ValueError if the files cannot be used."""
        await self._library.get()
        made: dict[str, Callable[[str], Tool[Any]]] = {
            "document_search": self._search_tool,
            "document_read": self._read_tool,
        }
        return [made[kind](name) for name, kind in self._tools.items()]

    async def close(self) -> None:
        """Frees the index."""
        self._library.close()

    async def catalogue(self) -> dict[str, str]:
        """Returns a line for each document."""
        documents = (await self._library.get()).documents.values()
        return {f"document {document.id}": f"document [{document.id}] {document.title}" for document in documents}

    def _search_tool(self, name: str) -> Tool[SearchDocuments]:
        description = (
            "Searches the documents by keywords and returns the best passage of each document that it finds. "
            "Documents that contain more of the keywords come first, and word endings do not matter. Each passage "
            "begins with the id of its document in square brackets, by which the whole document can be read. If no "
            "document contains any of the keywords, the list of all documents is returned."
        )
        return Tool(name, description, SearchDocuments, self._search, catalogue=self.catalogue)

    def _read_tool(self, name: str) -> Tool[ReadDocument]:
        description = (
            "Returns the whole text of one document, given its id. If there is no document with this id, the list of "
            "all documents is returned."
        )
        return Tool(name, description, ReadDocument, self._read, catalogue=self.catalogue)

    async def _search(self, arguments: SearchDocuments, context: ToolContext) -> ToolOutput:
        library = await self._library.get()
        hits = library.search(arguments.query, arguments.limit)
        if not hits:
            return ToolOutput(
                "No document contains any of these keywords. Try other words for the same thing. "
                f"These are all documents:\n{library.catalogue()}"
            )
        text = "\n\n".join(f"[{document.id}] {document.title}: {passage[:PASSAGE_CHARS]}" for document, passage in hits)
        return ToolOutput(text, sources=[document.id for document, _ in hits])

    async def _read(self, arguments: ReadDocument, context: ToolContext) -> ToolOutput:
        library = await self._library.get()
        document = library.documents.get(arguments.document_id)
        if document is None:
            raise ToolMisuse(f"There is no document with this id. These are all documents:\n{library.catalogue()}")
        return ToolOutput(document.text, sources=[document.id])
