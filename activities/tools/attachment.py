"""The texts that the user attached to the run and the plan gave to this subtask."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from activities.tools.tool import Arguments, NoOptions, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits

PAGE = limits.TOOL_OUTPUT_CHARS - 200  # the last line says where the next page starts


class ReadAttachment(Arguments):
    """One page of an attachment."""

    name: Annotated[str, Field(min_length=1, max_length=200, description="The attachment's name.")]
    offset: Annotated[int, Field(ge=0, description="Where to start, in characters.")] = 0


def read_attachment(name: str, options: dict[str, Any], folder: Path) -> Tool[ReadAttachment]:
    """Returns a tool of the kind `attachment`. Raises ValueError on options."""
    NoOptions.model_validate(options)
    description = "Returns the text of an attachment of this subtask, a page at a time."
    return Tool(name, description, ReadAttachment, _run, reads_attachments=True)


async def _run(arguments: ReadAttachment, context: ToolContext) -> ToolOutput:
    read = context.attachments.get(arguments.name)
    if read is None:
        names = ", ".join(context.attachments) or "none"
        raise ToolMisuse(f"this subtask has no attachment of that name; it has: {names}")
    text = await read()
    if arguments.offset and arguments.offset >= len(text):
        raise ToolMisuse(f"the attachment has only {len(text)} characters")
    end = arguments.offset + PAGE
    page = text[arguments.offset : end]
    if end < len(text):
        page += f"\n[characters {arguments.offset} to {end} of {len(text)}: continue with offset={end}]"
    return ToolOutput(page, sources=[arguments.name])
