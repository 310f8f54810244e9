"""The model server of a bench as the driver sees it: its process, its latency, what it counted."""

import json
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.processes import Process

_TIMEOUT = 10.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy


class ModelControl:
    """A model server on a free port; `script` is another one than the project's own, with the same control API."""

    def __init__(self, folder: Path, script: Path | None) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        own = Path(__file__).with_name("model_server.py")
        command = [sys.executable, str(script or own), "--port", str(port)]
        self.process = Process("model-server", command, folder, ready=self._serves, variables={})

    def prepare(self, latency: float) -> None:
        """Answers take `latency` seconds from now on, and the count starts anew."""
        self._ask("/config", {"latency_ms": latency * 1000})
        self._ask("/reset", {})

    def stats(self) -> dict[str, Any]:
        """What was counted since `prepare`."""
        counted: dict[str, Any] = self._ask("/stats")
        return counted

    def _serves(self, said: str) -> bool:
        try:
            with _OPENER.open(self.url + "/healthz", timeout=_TIMEOUT):
                return True
        except OSError:
            return False

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with _OPENER.open(urllib.request.Request(self.url + path, data=data), timeout=_TIMEOUT) as answer:
            return json.load(answer)


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
