"""Tools that freeze or end their Worker; `freeze_once` leaves a file and works when it finds it."""

import asyncio
import gc
import os
import threading
import time
from pathlib import Path

from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput


class Hazard(Arguments):
    path: str


def _first(arguments: Hazard) -> bool:
    with Path(arguments.path).open("a") as file:
        file.write("begun\n")
    return Path(arguments.path).read_text().count("begun") == 1


async def freeze_once(arguments: Hazard, context: ToolContext) -> ToolOutput:
    """Blocks the Worker's own event loop, which an author's tool does not run on: it looks for it."""
    if _first(arguments):
        loops = [one for one in gc.get_objects() if isinstance(one, asyncio.BaseEventLoop) and one.is_running()]
        (worker,) = [loop for loop in loops if getattr(loop, "_thread_id", None) == threading.main_thread().ident]
        worker.call_soon_threadsafe(time.sleep, 3600)
        await asyncio.sleep(3600)
    return ToolOutput("it thawed")


async def die(arguments: Hazard, context: ToolContext) -> ToolOutput:
    _first(arguments)
    os._exit(9)


TOOLS = [Tool("freeze_once", "Freezes.", Hazard, freeze_once), Tool("die", "Dies.", Hazard, die)]
