"""The texts that the user attached to the run and the plan gave to this subtask."""

from typing import Annotated

from pydantic import Field

from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits

PAGE = limits.TOOL_OUTPUT_CHARS - 200  # the last line says where the next page starts


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
    return Tool(name, description, ReadAttachment, _run, reads_attachments=True)


async def _run(arguments: ReadAttachment, context: ToolContext) -> ToolOutput:
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
