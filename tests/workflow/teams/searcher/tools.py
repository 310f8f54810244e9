"""A tool with effects, for tests of what may follow a search."""

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput


class Send(Arguments):
    """A message."""

    to: str


async def send(arguments: Send, context: ToolContext) -> ToolOutput:
    """Sends nothing."""
    return ToolOutput(f"sent to {arguments.to}")


TOOLS = [Tool("send", "Sends a message.", Send, send, reads="public", effects="outward")]
