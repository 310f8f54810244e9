"""The tools of the bench team: one short output, one of a page's length."""

from typing import Annotated

from pydantic import Field

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput

_PAGE_BYTES = 5000


class Lookup(Arguments):
    """The search words of a call."""

    query: Annotated[str, Field(max_length=200)]


async def lookup(arguments: Lookup, context: ToolContext) -> ToolOutput:
    """Returns one line."""
    return ToolOutput(f"lookup: nothing found for {arguments.query}")


async def lookup_long(arguments: Lookup, context: ToolContext) -> ToolOutput:
    """Returns a page of lines."""
    line = f"lookup: nothing found for {arguments.query}. "
    return ToolOutput((line * (_PAGE_BYTES // len(line) + 1))[:_PAGE_BYTES])


TOOLS = [
    Tool("lookup", "Look something up.", Lookup, lookup),
    Tool("lookup_long", "Look something up at length.", Lookup, lookup_long),
]
