"""Model servers on this machine that speak the Messages API.

They are found by their usual ports on loopback.
"""

import json
import os
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from temporal_supervisor.runtime import process

SERVERS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234}
_SECONDS = 0.5  # loopback answers in milliseconds, or nobody is there
_BYTES = 1 << 20  # of a list of models
_NAME_CHARS = 200


@dataclass(frozen=True)
class LocalModel:
    """A server that answered, and the first model that it lists; `others` counts the rest."""

    server: str
    url: str
    model: str
    others: int = 0

    @property
    def environ(self) -> dict[str, str]:
        """The variables that a Worker needs for it; a model's name only if there are several."""
        variables = {"ANTHROPIC_BASE_URL": self.url, "SUPERVISOR_MODEL": ""}
        if self.others:
            variables["SUPERVISOR_SUPERVISOR_MODEL"] = self.model
            variables["SUPERVISOR_WORKER_MODEL"] = self.model
        return variables

    @property
    def description(self) -> str:
        """The server, its URL and its model, for people."""
        more = f" and {self.others} more" if self.others else ""
        return f"{self.server} runs at {self.url} with {self.model}{more}"

    @property
    def worker_hint(self) -> str:
        """A sentence with the command of a Worker that uses it."""
        command = process.shell_command(process.PROGRAM, ["worker", "--local"])
        return f"{self.description}: {command} uses it"


def find_local_model(ports: Mapping[str, int] = SERVERS) -> LocalModel | None:
    """Returns the first of these servers that lists a model; None if none does.

    It takes half a second at most.
    """
    with ThreadPoolExecutor(len(ports)) as threads:
        found = list(threads.map(_model_at, ports.items()))
    return next((model for model in found if model is not None), None)


def take_local_model() -> LocalModel:
    """Sets this process's variables to a model server of this machine, and returns it.

    Raises ValueError if none answers.
    """
    found = find_local_model()
    if found is None:
        known = ", ".join(f"{server} at {port}" for server, port in SERVERS.items())
        none = f"no model server with a model answers on this machine ({known})"
        raise ValueError(f"{none}: start one, or name its URL")
    os.environ.update(found.environ)
    return found


def _model_at(server: tuple[str, int]) -> LocalModel | None:
    """Returns the model of a server, given its name and port; None if none answers."""
    name, port = server
    url = f"http://127.0.0.1:{port}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/v1/models", timeout=_SECONDS) as reply:
            models = _listed_names(json.loads(reply.read(_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    return LocalModel(name, url, models[0], len(models) - 1) if models else None


def _listed_names(listed: object) -> list[str]:
    """Returns the names in a list of models; empty for other JSON.

    Another program may have the port.
    """
    models = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(models, list):
        return []
    ids = [model.get("id") for model in models if isinstance(model, dict)]
    names = [name for name in ids if isinstance(name, str) and name.isprintable()]
    return [name for name in names if 0 < len(name) <= _NAME_CHARS]
