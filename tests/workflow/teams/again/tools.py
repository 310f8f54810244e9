"""Tools of the test team: one whose output changes, one with an effect."""

from pathlib import Path

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput


class Nothing(Arguments):
    """No arguments."""


class Line(Arguments):
    """A line for a file."""

    path: str


async def price(arguments: Nothing, context: ToolContext) -> ToolOutput:
    """The price of the minute."""
    return ToolOutput("it is 4711 euros", ["the market"])


async def append(arguments: Line, context: ToolContext) -> ToolOutput:
    """A line in the log."""
    with Path(arguments.path).open("a") as log:
        log.write("written\n")
    return ToolOutput("written")


TOOLS = [
    Tool("price", "Tells the price.", Nothing, price),
    Tool("append", "Appends a line to a file.", Line, append, effects="write"),
]
