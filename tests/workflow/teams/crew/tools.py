"""Tools of the crew: one for the toolbox, one that runs as an activity, one that nobody was given."""

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput


class Thing(Arguments):
    thing: str


async def weigh(arguments: Thing, context: ToolContext) -> ToolOutput:
    return ToolOutput(f"{arguments.thing} weighs 3 kg")


async def fetch(arguments: Thing, context: ToolContext) -> ToolOutput:
    return ToolOutput(f"here is {arguments.thing}")


TOOLS = [
    Tool("weigh", "Weighs a thing.", Thing, weigh),
    Tool("fetch", "Fetches a thing.", Thing, fetch),
    Tool("ignite", "Sets fire to a thing.", Thing, fetch),
]
