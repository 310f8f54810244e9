"""The command line of the server: ports, arguments and environment of the `temporal` program."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

HOST = "127.0.0.1"
PORT = 7233
UI_OFFSET = 1000  # the server's own convention: the Web UI's port is the server's plus this

# measured 1.5 (WAL) and 1.16 (eager activities) times cheaper than the server's defaults
PRAGMAS = ("journal_mode=wal", "synchronous=1")
DYNAMIC_CONFIG: Mapping[str, JsonValue] = {
    "system.enableActivityEagerExecution": True,
    "matching.enableFairness": True,  # one large run does not starve small ones; fan-outs are 2 to 4 times faster
    # Each partition of a queue gets an equal part of its rate, however much work lies in it: with four of them the last
    # sixth of a queue's work was handed out at half its rate.
    "matching.numTaskqueueReadPartitions": 1,
    "matching.numTaskqueueWritePartitions": 1,
    # A Worker sends each refused update back: above 2 MiB the server ends the run for it.
    "history.maxInFlightUpdatePayloads": 2**20,
}


def choose_ports(wanted: int | None, usual: bool) -> tuple[int, int]:
    """Returns the ports of server and Web UI: those wanted, else the usual ones if free, else free ones.

    Raises OSError if the wanted port is taken. Another process may take any of them before the server does.
    """
    if wanted is not None:
        socket.create_server((HOST, wanted)).close()
        return wanted, wanted + UI_OFFSET
    if usual and _free(PORT) and _free(PORT + UI_OFFSET):
        return PORT, PORT + UI_OFFSET
    with socket.create_server((HOST, 0)) as first, socket.create_server((HOST, 0)) as second:
        return first.getsockname()[1], second.getsockname()[1]


def _free(port: int) -> bool:
    try:
        with socket.create_server((HOST, port)):
            return True
    except OSError:
        return False


def arguments(
    port: int, ui_port: int | None, db: Path | None, dynamic_config: Mapping[str, JsonValue] | None
) -> list[str]:
    """Returns the program's arguments; `dynamic_config` comes on top of our own values."""
    words = ["server", "start-dev", "--ip", HOST, "--port", str(port)]
    words += ["--headless"] if ui_port is None else ["--ui-port", str(ui_port)]
    if db is not None:
        words += ["--db-filename", str(db)]
        words += [word for pragma in PRAGMAS for word in ("--sqlite-pragma", pragma)]
    for key, value in {**DYNAMIC_CONFIG, **(dynamic_config or {})}.items():
        words += ["--dynamic-config-value", f"{key}={json.dumps(value)}"]
    return words


def environment() -> dict[str, str]:
    """Returns our environment without variables that would redirect the server, and without secrets."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("TEMPORAL_", "ANTHROPIC_"))}
