"""The tool of a test team: one that needs a person's approval."""

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput


class Text(Arguments):
    text: str


async def send(arguments: Text, context: ToolContext) -> ToolOutput:
    return ToolOutput("sent")


TOOLS = [Tool("send", "Sends a text.", Text, send, effects="write", approve="always")]
