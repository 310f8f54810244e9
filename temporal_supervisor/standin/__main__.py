"""Serves the stand-in model until SIGTERM or Ctrl-C, by default on loopback."""

import argparse
import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import TextIO

from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.app import BrainServer, listen, run, serve_beside
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig


def main(arguments: list[str] | None = None) -> int:
    """Runs the server. Returns 0 after a clean stop, 1 if it cannot start."""
    os.umask(0o077)  # the call log names goals: its owner's alone
    parser = argparse.ArgumentParser(prog="temporal-supervisor standin", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--config", type=Path, help="scripted behaviour as JSON")
    parser.add_argument("--ledger", type=Path, help="file to append one JSON line to per event")
    parser.add_argument("--latency-ms", type=float, default=0, help="wait before each reply")
    options = parser.parse_args(arguments)
    with contextlib.ExitStack() as opened:
        try:
            config = ServerConfig.model_validate_json(_config(options.config))
            config.latency_ms = config.latency_ms or options.latency_ms
            log = opened.enter_context(_log(options.ledger))
            listener, url = _listener(options.host, options.port)
        except (ValueError, OSError) as error:
            sys.stderr.write(f"the stand-in model cannot start: {error}\n")
            return 1
        server = BrainServer(
            think, lambda entry: log.write(f"{json.dumps(entry)}\n"), FaultScript(config)
        )
        run(server, listener, url)
    return 0


def start_in_thread() -> dict[str, str]:
    """Starts the stand-in in a thread of this process.

    Returns the variables that make a Worker call it.
    """
    url = serve_beside(BrainServer(think))
    return {"ANTHROPIC_BASE_URL": url, "SUPERVISOR_MODEL": "standin"}


def _config(file: Path | None) -> bytes:
    """Returns the scripted behaviour. Raises ValueError for an unreadable file."""
    try:
        return file.read_bytes() if file else b"{}"
    except OSError as error:
        raise ValueError(f"--config {file} can't be read: {error.strerror}") from None


def _log(file: Path | None) -> TextIO:
    """Returns the file that gets a line of JSON for each event. Raises ValueError."""
    try:
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
        return (file or Path(os.devnull)).open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise ValueError(f"--ledger {file} can't be written: {error.strerror}") from None


def _listener(host: str, port: int) -> tuple[socket.socket, str]:
    """Returns a listening socket and its URL. Raises ValueError if the port is unavailable."""
    if port not in range(1 << 16):
        raise ValueError(f"port {port} is none: name one from 0 to 65535")
    try:
        return listen(host, port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ValueError(
            f"port {port} of {host}: {why}. Another --port may be free, 0 picks one"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
