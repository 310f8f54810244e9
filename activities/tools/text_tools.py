"""Tools that hand text through: they read the user's attachments, and make a Markdown document for the user."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from activities.tools.tool import Arguments, NewArtifact, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.base.text import clean, one_line, slug

PAGE = limits.TOOL_OUTPUT_CHARS - 200  # the last line says where the next page starts
_REPORT_SECTIONS = 50  # of a formatted document


class ReadAttachment(Arguments):
    """One page of an attachment."""

    name: Annotated[
        str, Field(min_length=1, max_length=200, description="The name of the attachment, as the subtask gives it.")
    ]
    offset: Annotated[int, Field(ge=0, description="The number of characters to skip. The default is 0.")] = 0


def read_attachment(name: str) -> Tool[ReadAttachment]:
    """Returns a tool of the kind `attachment`."""
    description = (
        "Returns the text of an attachment of this subtask, given its name. "
        f"A text of more than {PAGE} characters is returned in pages: the last line gives the offset of the next one."
    )
    return Tool(name, description, ReadAttachment, _read, reads_attachments=True)


async def _read(arguments: ReadAttachment, context: ToolContext) -> ToolOutput:
    read = context.attachments.get(arguments.name)
    if read is None:
        names = ", ".join(context.attachments) or "none"
        raise ToolMisuse(f"This subtask has no attachment with this name. It has: {names}")
    text = await read()
    if arguments.offset and arguments.offset >= len(text):
        raise ToolMisuse(f"The attachment has only {len(text)} characters. Use a smaller offset.")
    end = arguments.offset + PAGE
    page = text[arguments.offset : end]
    if end < len(text):
        page += f"\n[characters {arguments.offset} to {end} of {len(text)}: the next page has offset={end}]"
    return ToolOutput(page, sources=[arguments.name])


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
    return Tool(name, description, FormatDocument, _format, reads="public", evidence="nothing")


async def _format(arguments: FormatDocument, context: ToolContext) -> ToolOutput:
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
