"""A bucket for tests: an S3 server in this process."""

import threading
import urllib.request
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    # Each process of the tests collects this module, and few of them need the server.
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    serve, one_at_a_time = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def app(environ: Any, start_response: Any) -> Any:
        # moto looks whether an object is there, then writes it, without a lock: two that create at once both win.
        with one_at_a_time:
            return serve(environ, start_response)

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


@pytest.fixture
def s3_environment(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The variables that a user of the S3 server sets; returns its address."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_ALLOW_HTTP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTTESTTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-nobody-may-see")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return s3_endpoint


@pytest.fixture
def s3_url(s3_environment: str) -> str:
    """A store of its own in a fresh bucket."""
    bucket = f"artifacts-{uuid4().hex[:12]}"
    with urllib.request.urlopen(urllib.request.Request(f"{s3_environment}/{bucket}", method="PUT")):
        return f"s3://{bucket}/some/prefix"
