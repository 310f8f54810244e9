"""The tool of a poisoned run: it freezes the first Worker that runs it, until that one's watchdog ends it."""

import asyncio
import gc
import threading
import time
from pathlib import Path
from typing import Annotated

from pydantic import Field

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput

POISON = Path("poison")
"""A file in the folder that the Workers share: whoever takes it away is the one that freezes."""

_FOR_GOOD = 3600.0


class Lookup(Arguments):
    """The search words of a call."""

    query: Annotated[str, Field(max_length=200)]


async def freeze(arguments: Lookup, context: ToolContext) -> ToolOutput:
    """Freezes one Worker; returns one line in every other."""
    try:
        POISON.unlink()
    except FileNotFoundError:
        return ToolOutput(f"lookup: nothing found for {arguments.query}")
    # An author's tool does not run on the Worker's own loop: it has to look for it.
    loops = [one for one in gc.get_objects() if isinstance(one, asyncio.BaseEventLoop) and one.is_running()]
    (own,) = [loop for loop in loops if getattr(loop, "_thread_id", None) == threading.main_thread().ident]
    own.call_soon_threadsafe(time.sleep, _FOR_GOOD)
    await asyncio.sleep(_FOR_GOOD)
    return ToolOutput("")


TOOLS = [Tool("freeze", "Look something up.", Lookup, freeze)]
