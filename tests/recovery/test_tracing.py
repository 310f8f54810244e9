"""Tracing over OTLP to a collector on loopback: one trace a run, over client, Worker and model calls."""

import asyncio
import gzip
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.scripted_model import ScriptedModel, plan, script, text, tools
from tests.serving import ROOT, WorkerProcesses
from tests.waiting import until

SECRET = "the swans of the northern lake"


class Collector:
    """Keeps the spans that arrive."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                request = ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans.extend(scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def names(self) -> Counter[str]:
        return Counter(span.name for span in self.spans)


@pytest.fixture
def collector() -> Iterator[Collector]:
    collecting = Collector()
    yield collecting
    collecting.server.shutdown()


def _turn(step: object) -> object:
    return tools(("lookup", {"query": SECRET})) if step.number == 1 else text(SECRET)  # type: ignore[attr-defined]


async def _run(workers: WorkerProcesses, run_id: str) -> None:
    options = ["--team", "lab", "--id", run_id, "--max-reviews", "0"]
    command = [sys.executable, str(ROOT / "starter.py"), "run", SECRET, *options]
    done = await asyncio.to_thread(
        subprocess.run, command, env=workers.environ, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


async def test_a_run_is_one_trace_without_prompts_and_without_doubles(
    workers: WorkerProcesses, lone_model: ScriptedModel, run_id: str, collector: Collector
) -> None:
    lone_model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {"t1": _turn}))  # type: ignore[dict-item]
    workers.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
    worker = await workers.start()
    await _run(workers, run_id)
    worker.process.terminate()
    assert await asyncio.to_thread(worker.process.wait, 30) == 0
    replaying = await workers.start()
    environ = {key: value for key, value in workers.environ.items() if not key.startswith("OTEL_")}
    asked = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(ROOT / "starter.py"), "status", run_id], env=environ, capture_output=True
    )
    assert asked.returncode == 0
    replaying.process.terminate()
    assert await asyncio.to_thread(replaying.process.wait, 30) == 0

    await until(lambda: collector.names()["anthropic.messages.create"] == 5)
    names = collector.names()
    assert names["StartWorkflow:SupervisorWorkflow"] == 1
    assert names["RunWorkflow:SupervisorWorkflow"] == 1
    assert names["RunWorkflow:WorkerAgentWorkflow"] == 2
    assert names["RunActivity:call_model"] == 3
    assert names["RunActivity:run_tool"] == 1
    assert len({span.trace_id for span in collector.spans}) == 1, names  # following and asking leaves no spans
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    assert all(SECRET not in str(span) for span in collector.spans)
