"""Tools of the test team: a local one, one that waits until a file exists, one with an artifact."""

import asyncio
from pathlib import Path

from activities.tools.tool import Arguments, NewArtifact, Tool, ToolContext, ToolOutput


class Query(Arguments):
    query: str
    size: int = 20


class Waiting(Arguments):
    path: str


class Note(Arguments):
    text: str


async def lookup(arguments: Query, context: ToolContext) -> ToolOutput:
    return ToolOutput((f"found {arguments.query} " * arguments.size)[: arguments.size * 10], ["catalogue"])


async def wait_for_file(arguments: Waiting, context: ToolContext) -> ToolOutput:
    path = Path(arguments.path)
    with path.with_suffix(".started").open("a") as started:
        started.write("started\n")
    while not path.exists():
        await asyncio.sleep(0.05)
    return ToolOutput("the file is there")


async def note(arguments: Note, context: ToolContext) -> ToolOutput:
    return ToolOutput("noted", [], [NewArtifact("note.md", "text/markdown", arguments.text.encode())])


async def append(arguments: Waiting, context: ToolContext) -> ToolOutput:
    with Path(arguments.path).open("a") as log:
        log.write(f"{context.idempotency_key}\n")
    return ToolOutput("written")


TOOLS = [
    Tool("lookup", "Looks a thing up.", Query, lookup),
    Tool("wait_for_file", "Waits for a file.", Waiting, wait_for_file),
    Tool("note", "Notes a text.", Note, note),
    Tool("send", "Sends a text.", Note, note, effects="write", approve="always"),
    Tool("append", "Appends a line to a file.", Waiting, append, effects="write"),
]
