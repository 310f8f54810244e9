"""Tools of a test team: one that looks up, one that sends and needs a person's approval."""

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput


class Query(Arguments):
    name: str


class Message(Arguments):
    to: str
    words: str


async def lookup(arguments: Query, context: ToolContext) -> ToolOutput:
    return ToolOutput(f"found {arguments.name}", ["catalogue"])


async def send(arguments: Message, context: ToolContext) -> ToolOutput:
    return ToolOutput(f"sent to {arguments.to}: {arguments.words}")


TOOLS = [
    Tool("seek", "Looks a thing up.", Query, lookup),
    Tool("send", "Sends a message.", Message, send, effects="write", approve="always"),
]
