"""Tools of the orchard: a harvest book by year, notes by page, and a scale that is broken."""

from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput

HARVEST = {
    2009: "Harvest of 2009 in kg\nfruit,kg\npears,4412\napples,1830.5\nplums,96\nRevenue: USD 18.4 million",
    2010: "Harvest of 2010 in kg\nfruit,kg\npears,4950\napples,1700.25\nplums,88\nRevenue: USD 19.1 million",
}
NOTES = {
    1: 'The gardener wrote: "the late frost of May took every third blossom". See https://orchard.example.org/frost.',
    2: "The rain of August came too late to help the plums. Questions go to office@orchard.example.org.",
}


class Year(Arguments):
    year: int


class Page(Arguments):
    page: int


class Nothing(Arguments):
    pass


async def harvest(arguments: Year, context: ToolContext) -> ToolOutput:
    if arguments.year not in HARVEST:
        raise ToolMisuse(f"the book has no year {arguments.year}")
    return ToolOutput(HARVEST[arguments.year], ["harvest book"])


async def notes(arguments: Page, context: ToolContext) -> ToolOutput:
    return ToolOutput(NOTES[arguments.page], ["notes"])


async def scale(arguments: Nothing, context: ToolContext) -> ToolOutput:
    raise RuntimeError("the scale stopped at 7,731 kg")


TOOLS = [
    Tool("harvest", "Returns the harvest of a year.", Year, harvest),
    Tool("notes", "Returns a page of the notes.", Page, notes),
    Tool("scale", "Weighs what is on the scale.", Nothing, scale),
]
