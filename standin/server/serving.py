"""Serving a model server on a socket: as a process of its own, or inside another one's event loop."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from standin.server.app import BrainServer

_KEEP_ALIVE_SECONDS = 75  # above a client's pauses between turns: fewer lost idle connections
_SHUTDOWN_SECONDS = 2  # streams that are still open after SIGTERM are dropped then
_BACKLOG = 4096  # connections that come at once


class _Server(uvicorn.Server):
    """Leaves signals alone: the process decides which of them stop it."""

    def __init__(self, server: BrainServer, shutdown: int) -> None:
        super().__init__(
            uvicorn.Config(
                server.app(),
                log_level="critical",  # dropped connections are part of the script
                timeout_graceful_shutdown=shutdown,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Stops after open streams; a second time at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def listen(host: str = "127.0.0.1", port: int = 0) -> tuple[socket.socket, str]:
    """Returns a listening socket and its URL. Raises OSError."""
    listener = socket.create_server((host, port), backlog=_BACKLOG)
    return listener, f"http://{host}:{listener.getsockname()[1]}"


def run(server: BrainServer, listener: socket.socket, url: str) -> None:
    """Serves until SIGTERM or Ctrl-C; prints the URL once connections are accepted."""

    async def serve() -> None:
        serving = _Server(server, _SHUTDOWN_SECONDS)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, serving.stop)
        sys.stdout.write(f"stand-in model: {url}\n")
        sys.stdout.flush()
        await serving.serve(sockets=[listener])

    asyncio.run(serve())


@asynccontextmanager
async def serving(server: BrainServer) -> AsyncIterator[str]:
    """Serves on a free port for the time of an `async with` block, in this event loop; gives the URL."""
    listener, url = listen()
    process = _Server(server, shutdown=0)
    task = asyncio.create_task(process.serve(sockets=[listener]))
    try:
        yield url
    finally:
        process.stop()
        await task
