"""The model server of a bench as the driver sees it: its process, its latency, what it counted."""

import json
import secrets
import socket
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.processes import Process
from standin.server.app import TOKEN_VARIABLE

_CHECKOUT = Path(__file__).resolve().parent.parent
_CHEAP = {"append_only": False, "delta_chars": 1 << 20}  # what the server does beyond answering is switched off
_TIMEOUT = 10.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy


class ModelControl:
    """A model server on a free port: the stand-in's with the bench's brain, or `script`, which counts at `/stats`."""

    def __init__(self, folder: Path, script: Path | None) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._counts = script is not None
        self._token = secrets.token_hex()
        program = [str(script)] if script else ["-m", "benchmarks.bench_brain"]
        command = [sys.executable, *program, "--port", str(port)]
        variables = {"PYTHONPATH": str(_CHECKOUT), TOKEN_VARIABLE: self._token}
        self.process = Process("model-server", command, folder, self._serves, variables)

    def prepare(self, latency: float, *, keep: bool = False, **more: Any) -> None:
        """Answers take `latency` seconds from now on, and the count starts anew, unless it is to `keep` it.

        `more` is for the configuration of the stand-in's server.
        """
        if not keep:
            self._ask("/reset", {})
        self._ask("/config", {"latency_ms": latency * 1000, **({} if self._counts else _CHEAP), **more})

    def stats(self) -> dict[str, Any]:
        """Returns what was counted since `prepare`."""
        counted: dict[str, Any] = self._ask("/stats") if self._counts else _counted(self.ledger())
        return counted

    def ledger(self) -> list[dict[str, Any]]:
        """Returns every call since `prepare`, as received and as answered; only the stand-in's server has one."""
        entries: list[dict[str, Any]] = self._ask("/ledger")
        return entries

    def _serves(self, output: str) -> bool:
        try:
            with _OPENER.open(self.url + "/healthz", timeout=_TIMEOUT):
                return True
        except OSError:
            return False

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"authorization": f"Bearer {self._token}"})
        with _OPENER.open(request, timeout=_TIMEOUT) as answer:
            return json.load(answer)


def _counted(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the numbers of a call log; a call is known by its header, a run's id is that header's beginning."""
    answered = Counter(entry["call"] for entry in entries if entry["event"] == "answered")
    first: dict[str, dict[str, float]] = {}
    in_flight = most = 0
    for entry in entries:
        first.setdefault(entry["call"].partition("/")[0], {"first": entry["at"]})
        in_flight += 1 if entry["event"] == "received" else -1
        most = max(most, in_flight)
    return {
        "total_completed": answered.total(),
        "repeated_completed": sum(times - 1 for times in answered.values()),
        "in_flight_max": most,
        "runs": first,
    }


def free_port() -> int:
    """Returns a port of the loopback address that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
