"""A titled Markdown document out of sections, kept as an artifact for the user."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from activities.tools.tool import Arguments, NewArtifact, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.base.text import clean, one_line, slug

_REPORT_SECTIONS = 50  # of a formatted document


class Section(BaseModel):
    """One section; `body` is Markdown."""

    model_config = ConfigDict(extra="forbid")

    heading: Annotated[str, Field(max_length=limits.SENTENCE_BYTES)]
    body: str


class FormatDocument(Arguments):
    """A document."""

    title: Annotated[str, Field(min_length=1, max_length=limits.SENTENCE_BYTES)]
    sections: Annotated[
        list[Section],
        Field(
            min_length=1,
            max_length=_REPORT_SECTIONS,
            description='The sections in order, each as {"heading": "...", "body": "Markdown"}.',
        ),
    ]


def format_document(name: str) -> Tool[FormatDocument]:
    """Returns a tool of the kind `document_format`."""
    description = (
        "Renders a title and sections as one Markdown document and stores it as a file for the user. "
        "The result is the document as it was stored."
    )
    return Tool(name, description, FormatDocument, _run, evidence="nothing")


async def _run(arguments: FormatDocument, context: ToolContext) -> ToolOutput:
    title = _heading(arguments.title)
    if not title:
        raise ToolMisuse("The title is empty. Give the document a title of one line.")
    parts = [f"# {title}"]
    for section in arguments.sections:
        if heading := _heading(section.heading):
            parts.append(f"## {heading}")
        if body := clean(section.body).strip():
            parts.append(body)
    if len(parts) == 1:
        raise ToolMisuse("All sections are empty. Give at least one of them a body.")
    text = "\n\n".join(parts) + "\n"
    file = NewArtifact(f"{slug(title) if _has_words(title) else 'document'}.md", "text/markdown", text.encode())
    return ToolOutput(text, artifacts=[file])


def _heading(text: str) -> str:
    return one_line(clean(text), limits.SENTENCE_BYTES).lstrip("# ")


def _has_words(text: str) -> bool:
    return any(character.isascii() and character.isalnum() for character in text)
