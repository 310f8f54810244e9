"""`python -m standin --port N`: serves the stand-in model on loopback until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import uvicorn

from standin.app import StandIn
from standin.faults import BadConfig
from supervision import limits


class _Server(uvicorn.Server):
    """Says where it serves; a signal stops it without becoming its exit status."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, self._stop)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        sys.stdout.write(f"stand-in model: {self._url}\n")
        sys.stdout.flush()

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # the second signal does not wait for open streams
        self.should_exit = True


def main(arguments: list[str] | None = None) -> int:
    """Runs the server; 0 after a clean stop, 1 when it cannot start."""
    os.umask(0o077)  # the ledger names goals: its owner's alone
    parser = argparse.ArgumentParser(prog="python -m standin", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--config", type=Path, help="scripted behaviour as JSON, read again when it changes")
    parser.add_argument("--ledger", type=Path, help="file to append one JSON line to per event")
    parser.add_argument("--latency-ms", type=float, default=0, help="wait before each reply")
    options = parser.parse_args(arguments)
    try:
        standin = StandIn(options.config, options.ledger, timedelta(milliseconds=options.latency_ms))
        listener = socket.create_server((options.host, options.port), backlog=4096)
    except (BadConfig, OSError) as error:
        sys.stderr.write(f"the stand-in model cannot start: {error}\n")
        return 1
    url = f"http://{options.host}:{listener.getsockname()[1]}"
    config = uvicorn.Config(
        standin.app(),
        log_level="critical",  # dropped connections are part of the script
        timeout_graceful_shutdown=int(limits.STANDIN_SHUTDOWN.total_seconds()),
        timeout_keep_alive=int(limits.STANDIN_KEEP_ALIVE.total_seconds()),
    )
    try:
        asyncio.run(_Server(config, url).serve(sockets=[listener]))
    finally:
        standin.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
