"""Traces and metrics over OTLP to a collector on loopback: one trace a run, from client, Worker and model calls."""

import asyncio
import gzip
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from temporalio.client import Client

from tests.scripted_model import OTHERS, ScriptedModel, Step, answer, plan, script, status, stop, text, tools
from tests.serving import ROOT, WorkerProcesses
from tests.waiting import until
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.scripts import item, subtasks
from workflows.supervisor import SupervisorWorkflow

SECRET = "the swans of the northern lake"
KEY = "sk-canary-4711"
RUN = "invoke_workflow lab"


class Collector:
    """Keeps the spans and metrics that arrive."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.metrics: dict[str, Metric] = {}
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(self.path, body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in traced.scope_spans for span in scope.spans]
        else:
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics |= {m.name: m for scope in measured.scope_metrics for m in scope.metrics}


def tree(spans: list[Span]) -> Counter[tuple[str, str]]:
    """How many spans of a name are below spans of another name."""
    names = {span.span_id: span.name for span in spans}
    return Counter((names.get(span.parent_span_id, ""), span.name) for span in spans)


def facts(span: Any) -> dict[str, Any]:
    """The attributes of a span or a point."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    collecting = Collector()
    yield collecting
    collecting.server.shutdown()
    collecting.server.server_close()


def _played(step: Step) -> Any:
    return tools(("lookup", {"query": SECRET})) if step.number == 1 else text(SECRET)


def _away_once() -> Any:
    left = [status(503, "api_error")]
    return lambda step: left.pop() if left else text(SECRET)


async def _run(workers: WorkerProcesses, run_id: str, team: str = "lab") -> None:
    options = ["--team", team, "--id", run_id, "--max-reviews", "0"]
    command = [sys.executable, str(ROOT / "starter.py"), "run", SECRET, *options]
    done = await asyncio.to_thread(
        subprocess.run, command, env=workers.environ, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def _traced(workers: WorkerProcesses, url: str, **more: str) -> None:
    quick = {"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_METRIC_EXPORT_INTERVAL": "500"}
    workers.environ |= {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "ANTHROPIC_API_KEY": KEY, **quick, **more}


async def test_the_spans_of_a_run_are_its_steps_and_a_replay_adds_none(
    workers: WorkerProcesses, lone_client: Client, lone_model: ScriptedModel, run_id: str, collector: Collector
) -> None:
    """After a replay the run is reset, so that all its steps are done again with the answers out of the journal."""
    lone_model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {"t1": _played, "t2": _away_once()}))
    _traced(workers, collector.url, SUPERVISOR_LOG_FORMAT="json")
    worker = await workers.start()
    await _run(workers, run_id)
    await worker.stopped()
    spans, metrics = list(collector.spans), dict(collector.metrics)
    again = await workers.start()
    ended = lone_client.get_workflow_handle_for(SupervisorWorkflow.run, run_id)
    first = (await ended.describe()).run_id
    await ended.query("status")
    ended = lone_client.get_workflow_handle_for(SupervisorWorkflow.run, run_id, first_execution_run_id=first)
    await (await reset(lone_client, ended, (await workflow_tasks(ended))[0])).result()
    await again.stopped()

    small, large, agent = "chat claude-haiku-5-5", "chat claude-opus-5-5", "invoke_agent finder"
    steps = Counter({
        ("", RUN): 1,
        (RUN, "start_run"): 1,
        (RUN, "prepare_run"): 1,
        (RUN, large): 2,  # the plan, the answer
        (RUN, agent): 2,
        (agent, small): 5,  # two turns of t1; two attempts at one of t2, and its second turn, as it rests on nothing
        (agent, "execute_tool lookup"): 1,
        (RUN, "publish_result"): 1,
    })  # fmt: skip
    assert tree(spans) == steps
    assert len({span.span_id for span in spans}) == len(spans)
    steps_again = steps - Counter({(RUN, "start_run"): 1, (agent, small): 1}) + Counter({(RUN, "end_orphans"): 1})
    anew = collector.spans[len(spans) :]
    assert tree(anew) == steps_again
    assert len({span.trace_id for span in collector.spans}) == 1
    calls = [facts(span) for span in spans if span.name == small]
    assert {call["gen_ai.conversation.id"] for call in calls} == {run_id}
    failed = [call for call in calls if "error.type" in call]
    assert [(call["error.type"], call["supervisor.attempt"]) for call in failed] == [("ProviderError", 1)]
    assert sorted(call["supervisor.attempt"] for call in calls) == [1, 1, 1, 1, 2]
    paid = sum(facts(span).get("gen_ai.usage.output_tokens", 0) for span in spans)
    assert paid == 10 * 6  # each answer of the script, once
    repeated = [facts(span) for span in anew if span.name in (small, large)]
    assert all(call["supervisor.from_journal"] and "gen_ai.usage.output_tokens" not in call for call in repeated)
    whole = next(span for span in spans if span.name == RUN)
    inner = [span for span in spans if span.name not in (RUN, "start_run", "publish_result")]
    assert all(whole.start_time_unix_nano <= span.start_time_unix_nano for span in inner)
    assert all(span.end_time_unix_nano <= whole.end_time_unix_nano for span in inner)

    points = metrics["gen_ai.client.token.usage"].histogram.data_points
    assert sum(point.sum for point in points if facts(point)["gen_ai.token.type"] == "output") == paid
    assert {"gen_ai.client.operation.duration", "supervisor.run.duration", "supervisor.usd"} <= set(metrics)
    assert [point.as_int for point in metrics["supervisor.retries"].sum.data_points] == [1]
    assert {facts(point)["supervisor.kind"] for point in metrics["supervisor.waiting"].gauge.data_points} == {
        *("person", "provider", "paused")
    }
    assert any(name.startswith("temporal_") for name in metrics)  # of the SDK's core
    seen = [*map(str, collector.spans), *map(str, metrics.values()), worker.log.read_text()]
    assert not [text for text in seen if SECRET in text or KEY in text]


def _nested(step: Step) -> Any:
    if step.kind == "plan":
        return plan({"id": "s1"}) if step.subtask_id else subtasks(item("t1", "group"), item("t2", "junior"))
    if step.kind in OTHERS:
        return OTHERS[step.kind](step)
    if step.kind == "synthesis":
        return answer()
    if step.call.startswith(f"{step.run_id}/t1/"):
        return _played(step)
    return stop("refusal") if step.attempt == 1 else text(SECRET)


async def test_nested_runs_and_retries_are_in_the_trace_of_their_root_with_texts_if_asked_for(
    workers: WorkerProcesses, lone_model: ScriptedModel, run_id: str, collector: Collector
) -> None:
    lone_model.play(run_id, _nested)
    _traced(workers, collector.url, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true")
    worker = await workers.start()
    await _run(workers, run_id, "relay")
    await worker.stopped()
    root, group, finder = "invoke_workflow relay", "invoke_agent group", "invoke_agent finder"
    seen = tree(collector.spans)
    assert len({span.trace_id for span in collector.spans}) == 1
    assert seen["", root] == seen[root, group] == seen[group, finder] == seen[finder, "execute_tool lookup"] == 1
    assert sum(number for (above, _), number in seen.items() if not above) == 1
    (retried,) = (facts(span) for span in collector.spans if facts(span).get("supervisor.subtask_attempts", 1) > 1)
    assert (retried["gen_ai.agent.name"], retried["supervisor.status"]) == ("junior", "completed")
    texts = {span.name.partition(" ")[0]: facts(span) for span in collector.spans}
    assert SECRET in texts["execute_tool"]["gen_ai.tool.call.arguments"]
    assert any(SECRET in facts(span).get("gen_ai.output.messages", "") for span in collector.spans)
    assert all(KEY not in str(span) for span in collector.spans)


async def test_a_collector_that_never_answers_slows_nothing(
    workers: WorkerProcesses, lone_model: ScriptedModel, run_id: str
) -> None:
    lone_model.play(run_id, script(plan({"id": "t1"}), {"t1": _played}))
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        _traced(workers, f"http://127.0.0.1:{port}", OTEL_EXPORTER_OTLP_TIMEOUT="1")
        worker = await workers.start()
        began = time.monotonic()
        await _run(workers, run_id)
        assert time.monotonic() - began < 15
        await until(lambda: "takes no traces" in worker.log.read_text())
        await worker.stopped()
    about = [line for line in worker.log.read_text().splitlines() if "collector" in line or "xport" in line]
    assert len(about) == 1, about
    assert "never awaited" not in worker.log.read_text()
