"""Documents: `search_documents` finds passages, `read_document` returns a whole document."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from activities.bounded.child_processes import BoundExceeded, Failed
from activities.files.file_cache import FileCache, Files
from activities.files.file_reports import FileReport
from activities.tools.files import FileData, FolderFiles
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput, ToolSource
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import NO_HITS
from temporal_supervisor.supervision.base.text import clean, one_line
from temporal_supervisor.supervision.contract.base import StrictModel

_SEARCH_HITS = 5
_SEARCH_TERMS = 32  # words of a query that count
_SEARCH = (
    "Searches the documents by keywords and returns the best passage of each of the "
    f"{_SEARCH_HITS} best documents. Documents that contain more of the keywords come first, and "
    "word endings do not matter. Each passage begins with the id of its document in square "
    "brackets, by which the whole document can be read. If no document contains any of the "
    "keywords, the list of all documents is returned."
)
_READ = (
    "Returns the text of one document, given its id, with its pages or headings. A long document "
    "can be read from a place on. If there is no document with this id, the list of all documents "
    "is returned."
)


_ID_WORDS = """\
The id of the document, as a search or the subtask shows it in square brackets."""


class DocumentOptions(StrictModel):
    """Options of both kinds: `documents` is a pattern for the team's files, to which a run adds."""

    documents: str = ""


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


class ReadDocument(Arguments):
    """One document."""

    document_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=300,
            description=_ID_WORDS,
        ),
    ]
    place: Annotated[
        str,
        Field(
            max_length=300,
            description="Where to start: a page of a PDF, as search results name it, or a heading.",
        ),
    ] = ""


@dataclass(frozen=True)
class Document:
    """A document; its id is the name of its file, and `file` contains its text."""

    id: str
    title: str
    file: str


class Library:
    """Documents by id, with a full-text index, and the files that cannot be read."""

    def __init__(self, cache: FileCache, reports: list[FileReport]) -> None:
        self._cache = cache
        self._reports = reports
        self.documents: dict[str, Document] = {}
        self.unread: list[str] = []
        for report in reports:
            found = report.document
            if found:
                title = one_line(clean(found["title"]), limits.SENTENCE_BYTES) or report.name
                self.documents[report.name] = Document(report.name, title, found["file"])
            if report.problem:
                self.unread.append(f"{report.name}: {report.problem}")

    def find(self, written: str) -> tuple[Document, str] | None:
        """Returns the document of an id or a source, and the source's page; None if there is none.

        Both `report.pdf` and `[report.pdf p. 3]` find the document `report.pdf`.
        """
        source = written.strip().removeprefix("[").removesuffix("]")
        name, _, page = source.partition(" p. ")
        if name not in self.documents:
            return None
        return self.documents[name], f"p. {page}" if page else ""

    async def search(self, query: str, run_id: str) -> tuple[list[tuple[str, str]], list[str]]:
        """Returns source and text of the best passage of each of the best documents.

        The second list names documents that were not searched. Raises ToolMisuse if none can be
        searched.
        """
        words = re.findall(r"\w+", query)[:_SEARCH_TERMS]
        if not (self.documents and words):
            return [], []
        match = " OR ".join(f'"{word}"' for word in words)  # quoted: nothing of it is FTS syntax
        try:
            found = await self._cache.search(self._reports, match, _SEARCH_HITS, run_id)
        except (BoundExceeded, Failed) as problem:
            why = one_line(clean(str(problem)), limits.SENTENCE_BYTES)
            failed = f"The documents can't be searched: {why}"
            raise ToolMisuse(f"{failed}\n{self.catalogue()}") from None
        return [self._format_hit(*hit) for hit in found["hits"]], found["left_out"]

    def _format_hit(self, name: str, place: str, passage: str) -> tuple[str, str]:
        is_page = re.fullmatch(r"p\. \d+", place) is not None  # a heading is in the text itself
        source = f"{name} {place}" if is_page else name
        return source, f"[{source}] {self.documents[name].title}: {passage}"

    async def text(self, document: Document, place: str, run_id: str) -> str:
        """Returns the text of a document, from a place on. Raises ToolMisuse."""
        try:
            found = await self._cache.text(document.file, place.strip(), run_id)
        except (BoundExceeded, Failed) as problem:
            why = one_line(clean(str(problem)), limits.SENTENCE_BYTES)
            raise ToolMisuse(f"This document can't be read: {why}") from None
        if "known" in found:
            known = "; ".join(found["known"]) or "none"
            missing = "This document has no such place. Leave it out to read all."
            raise ToolMisuse(f"{missing} It has: {known}")
        return str(found["text"])

    def catalogue(self) -> str:
        """Returns the list of ids and titles, and of the files that cannot be read."""
        listed = [f"[{document.id}] {document.title}" for document in self.documents.values()]
        unread = ["Files that cannot be read:", *self.unread] if self.unread else []
        return "\n".join([*listed, *unread])


class DocumentTools(ToolSource):
    """The tools over some documents. `tools` maps the name of each tool to its kind."""

    def __init__(self, files: FolderFiles, tools: dict[str, str], options: DocumentOptions) -> None:
        self._library = FileData(files, partial(Library, files.cache))
        self._tools = tools

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools. Raises ValueError if the files cannot be used."""
        await self._library.load()
        made: dict[str, tuple[str, type[Arguments], Callable[..., Any]]] = {
            "document_search": (_SEARCH, SearchDocuments, self._search),
            "document_read": (_READ, ReadDocument, self._read_document),
        }
        return [
            Tool(name, *made[kind], catalogue=self.catalogue, version=self._library.version)
            for name, kind in self._tools.items()
        ]

    async def problems(self) -> list[str]:
        """Returns the files that cannot be read, with the reasons."""
        return (await self._library.load()).unread

    async def catalogue(self, run: Files | None) -> dict[str, str]:
        """Returns a line for each document."""
        lines = {}
        library = await self._library.load(run)
        for document in library.documents.values():
            lines[f"document {document.id}"] = f"document [{document.id}] {document.title}"
        return lines

    async def _search(self, arguments: SearchDocuments, context: ToolContext) -> ToolOutput:
        library = await self._library.load(context.files)
        hits, left_out = await library.search(arguments.query, context.run_id)
        unread = ""
        if left_out:
            unread = f"\n\nToo long to be searched, but can be read: {', '.join(left_out)}"
        if not hits:
            advice = "Try other words for the same thing. These are all documents:"
            return ToolOutput(f"{NO_HITS} {advice}\n{library.catalogue()}{unread}")
        sources, texts = zip(*hits, strict=True)
        return ToolOutput(clean("\n\n".join(texts) + unread), sources=list(sources))

    async def _read_document(self, arguments: ReadDocument, context: ToolContext) -> ToolOutput:
        library = await self._library.load(context.files)
        found = library.find(arguments.document_id)
        if found is None:
            missing = "There is no document with this id. These are all documents:"
            raise ToolMisuse(f"{missing}\n{library.catalogue()}")
        document, page = found
        text = await library.text(document, arguments.place or page, context.run_id)
        return ToolOutput(text, sources=[document.id])
