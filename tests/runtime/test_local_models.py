"""A model server on this machine: found by its list of models, and taken by one word."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from temporal_supervisor.runtime import local_models
from temporal_supervisor.runtime.local_models import find_local_model, take_local_model


@contextmanager
def serving(text: str) -> Iterator[int]:
    """A server that answers every path with this text; yields its port."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def models(*names: str) -> str:
    """A list of models as these servers give it."""
    return json.dumps({"data": [{"id": name} for name in names]})


def test_a_server_is_named_with_its_model_and_the_word_that_takes_it() -> None:
    with serving(models("small-1")) as port:
        found = find_local_model({"Nobody": 9, "Ollama": port})
    assert found is not None
    assert found.description == f"Ollama runs at http://127.0.0.1:{port} with small-1"
    assert found.worker_hint.endswith("worker --local` uses it")
    assert found.environ == {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "SUPERVISOR_MODEL": ""}


def test_of_several_models_the_first_is_named_to_the_worker() -> None:
    with serving(models("small-1", "large-2")) as port:
        found = find_local_model({"LM Studio": port})
    assert found is not None
    assert found.description.endswith("with small-1 and 1 more")
    assert found.environ["SUPERVISOR_WORKER_MODEL"] == "small-1"


@pytest.mark.parametrize("text", ["<html>", "[]", '{"data": 3}', '{"data": [{"id": ""}, 4]}', models(), "[" * 9000])
def test_another_program_at_the_port_is_no_model(text: str) -> None:
    with serving(text) as port:
        assert find_local_model({"llama.cpp": port}) is None


def test_what_is_taken_stands_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERVISOR_MODEL", "standin")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    with serving(models("small-1")) as port:
        monkeypatch.setattr(local_models.find_local_model, "__defaults__", ({"Ollama": port},))
        take_local_model()
    assert os.environ["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{port}"
    assert os.environ["SUPERVISOR_MODEL"] == ""
    with pytest.raises(ValueError, match="no model server with a model answers on this machine"):
        take_local_model()
