"""Runs the embedded Temporal server with its Web UI until Ctrl-C."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from runtime.process import INTERRUPTED, PROGRAM, cache_dir, command, exit_now, keep_files_private
from runtime.server.embedded_server import HOST, PORT, EmbeddedServer, ServerFailed, ServerInfo, running, stop_running
from runtime.server.temporal_binary import TemporalNotFound, find_temporal


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and serves. Exits with 1 and one sentence if there is no server."""
    keep_files_private()
    options = _parser().parse_args(arguments)
    try:
        code = _run(options)
    except (TemporalNotFound, ServerFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        code = 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    exit_now(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} serve", description=__doc__)
    parser.add_argument("--headless", action="store_true", help="no Web UI")
    parser.add_argument("--port", type=int, help=f"the server's port (default: {PORT}, or a free one)")
    parser.add_argument("--db", type=Path, help="the database file (default: temporal.db in the cache folder)")
    parser.add_argument("--in-memory", action="store_true", help="keep nothing on disk")
    parser.add_argument("--detach", action="store_true", help="leave it running in the background")
    parser.add_argument("--stop", action="store_true", help="end the one that runs")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.stop:
        stopped = asyncio.run(stop_running())
        _write(f"Stopped the Temporal server at {stopped.address}." if stopped else "No Temporal server is running.")
        return 0
    if info := asyncio.run(running()):
        _print_record(info, "A Temporal server is already running")
        return 0
    find_temporal()  # before any event loop, so that Ctrl-C ends a build at once
    server = EmbeddedServer(
        db=None if options.in_memory else options.db or cache_dir() / "temporal.db",
        port=options.port,
        headless=options.headless,
        detach=options.detach,
    )
    return asyncio.run(_serve(server, options.detach))


async def _serve(server: EmbeddedServer, detach: bool) -> int:
    me = asyncio.current_task()
    assert me is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, me.cancel)
    try:
        async with server as info:
            if server.joined or detach:
                _print_record(info, "The Temporal server is running")
                return 0
            _print_record(info, "The Temporal server is running", "Ctrl-C")
            code = await server.ended()
    except asyncio.CancelledError:
        _write("Stopped.")
        return 0
    _write(f"The Temporal server ended by itself with exit code {code}; its log: {info.log}")
    return 1


def _print_record(info: ServerInfo, headline: str, how_to_stop: str = "") -> None:
    _write(f"{headline} (process {info.pid}).")
    _write(f"  address   {info.address}")
    if info.address != f"{HOST}:{PORT}":
        _write(f"            export TEMPORAL_ADDRESS={info.address}")
    _write(f"  Web UI    {info.ui or 'none (headless)'}")
    _write(f"  database  {info.db or 'in memory'}")
    _write(f"  log       {info.log}")
    _write(f"  stop      {how_to_stop or command(PROGRAM, ['serve', '--stop']).strip('`')}")


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
