"""The command `serve`: the embedded Temporal server with its Web UI."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from temporal_supervisor.console.base.command import (
    DONE,
    FAILED,
    CommandFailed,
    access,
    hint,
    perform,
)
from temporal_supervisor.console.base.terminal import print_out
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.server.embedded_server import (
    HOST,
    PORT,
    UI_OFFSET,
    EmbeddedServer,
    stop_running,
)
from temporal_supervisor.runtime.server.temporal_binary import find_temporal


def serve(
    headless: Annotated[bool, typer.Option("--headless", help="no Web UI")] = False,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535 - UI_OFFSET, help=f"default {PORT}, or a free one"),
    ] = None,
    db: Annotated[
        Path | None, typer.Option(help="the database file; default temporal.db in the cache folder")
    ] = None,
    in_memory: Annotated[bool, typer.Option("--in-memory", help="keep nothing on disk")] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="leave it running in the background")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="end the one that runs")] = False,
) -> NoReturn:
    """Run the embedded Temporal server with its Web UI until Ctrl-C."""

    def begun() -> Coroutine[Any, Any, int]:
        if stop:
            return _stop()
        find_temporal()  # before any event loop, so that Ctrl-C ends a build at once
        place = None if in_memory else db or cache_dir() / "temporal.db"
        return _serve(EmbeddedServer(db=place, port=port, headless=headless, detach=detach))

    raise typer.Exit(perform(access, begun))


async def _stop() -> int:
    stopped = await stop_running()
    if stopped:
        print_out(f"Stopped the Temporal server at {stopped.address}.")
    else:
        print_out("No Temporal server is running.")
    return DONE


async def _serve(server: EmbeddedServer) -> int:
    me = asyncio.current_task()
    assert me is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, me.cancel)
    try:
        async with server as info:
            stays = server.joined or server.detach
            stop = hint("serve", "--stop").strip("`") if stays else "Ctrl-C"
            already = "already " if server.joined else ""
            print_out(f"The Temporal server is {already}running (process {info.pid}).")
            print_out(f"  address   {info.address}")
            if info.address != f"{HOST}:{PORT}":
                print_out(f"            export TEMPORAL_ADDRESS={info.address}")
            print_out(f"  Web UI    {info.ui or 'none (headless)'}")
            print_out(f"  database  {info.db or 'in memory'}")
            print_out(f"  log       {info.log}")
            print_out(f"  stop      {stop}")
            if stays:
                return DONE
            code = await server.ended()
    except asyncio.CancelledError:
        print_out("Stopped.")
        return DONE
    ended = f"the Temporal server ended by itself with exit code {code}"
    raise CommandFailed(FAILED, f"{ended}; its log: {info.log}")
