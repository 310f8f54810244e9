"""A Worker's log: one line for what is expected, a traceback for a bug; what the variables of OpenTelemetry ask for."""

import io
import json
import logging
import re
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from opentelemetry import trace
from temporalio.exceptions import ApplicationError

from temporal_supervisor.runtime import telemetry
from temporal_supervisor.runtime.logs import CleanLines, JsonLines, ShortLines
from temporal_supervisor.runtime.telemetry import TRACES_LOST, configure, core_metrics
from temporal_supervisor.supervision.base import limits

ROOT = Path(__file__).parents[2]


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(written: io.StringIO) -> logging.Logger:
    return shortening("temporalio.activity", written)


def shortening(name: str, written: io.StringIO, form: logging.Formatter | None = None) -> logging.Logger:
    """A logger whose handler shortens."""
    made, handler = logging.Logger(name), logging.StreamHandler(written)
    handler.setFormatter(form)
    handler.addFilter(ShortLines())
    made.addHandler(handler)
    return made


def failed(log: logging.Logger, error: Exception) -> None:
    info = {"workflow_id": "iowa/t1/1", "activity_type": "call_model"}
    try:
        raise error from ConnectionError("the cause")
    except Exception:
        log.warning("Completing activity as failed", exc_info=True, extra={"temporal_activity": info})


def test_an_expected_failure_is_one_line_that_says_what_follows(log: logging.Logger, written: io.StringIO) -> None:
    failed(log, ApplicationError("cannot reach 127.0.0.1:9", type="ProviderUnreachable"))
    failed(log, ApplicationError("bad key", type="ProviderAuthentication", non_retryable=True))
    assert written.getvalue().splitlines() == [
        "iowa/t1/1 call_model is tried again: ProviderUnreachable: cannot reach 127.0.0.1:9",
        "iowa/t1/1 call_model is not tried again: ProviderAuthentication: bad key",
    ]


def test_a_bug_keeps_its_traceback(log: logging.Logger, written: io.StringIO) -> None:
    failed(log, KeyError("x"))
    failed(log, ApplicationError("x", type="SomethingElse"))
    assert written.getvalue().count("Traceback") == 2


EVIL = "x\n2026-11-23 ERROR root: FAKE LINE \x1b[31m\r\x9b31m\u2028\u202e"
TIME = r"20\d\d-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d"


def stranger(written: io.StringIO, formatter: logging.Formatter) -> None:
    """Logs what a stranger has named and raised."""
    made = shortening("stranger", written, formatter)
    made.warning("workflow '%s' does not belong", EVIL, extra={"fields": {"run": EVIL, "seconds": 0.5}})
    try:
        raise KeyError from ValueError(EVIL)
    except KeyError:
        made.exception(EVIL)


def test_no_id_or_message_of_a_stranger_writes_a_line_or_an_escape_sequence(written: io.StringIO) -> None:
    stranger(written, CleanLines())
    lines = written.getvalue().split("\n")
    assert [line for line in lines if line and not re.match(rf"{TIME} (WARNING|ERROR) |  ", line)] == []
    assert re.search(r'run="x\\n2026-11-23 ERROR root: FAKE LINE .*" seconds=0.5$', lines[0])
    assert not set(written.getvalue()) & set("\x1b\x9b\r\u202e")


def test_as_json_each_record_is_an_object_on_a_line(written: io.StringIO) -> None:
    stranger(written, JsonLines())
    first, second = map(json.loads, written.getvalue().splitlines())
    assert re.fullmatch(TIME, first["time"])
    assert (first["level"], first["logger"], first["seconds"]) == ("WARNING", "stranger", 0.5)
    assert "Traceback" in second["traceback"]
    assert not set(str(first) + str(second)) & set("\x1b\x9b\r\u202e")


def test_an_outage_is_told_once_a_minute_for_as_long_as_it_lasts() -> None:
    record = logging.LogRecord("opentelemetry.sdk", logging.WARNING, "", 0, "Transient error", None, None)
    short, told = ShortLines(), []
    assert not short.filter(record)  # it tries again
    record.levelno, record.msg = logging.ERROR, "Failed to export"
    for second in range(0, 180, 20):
        record.created = 1_000_000.0 + second
        told += [second] if short.filter(record) else []
    assert (told, record.getMessage()) == ([0, 80, 160], TRACES_LOST)


def test_a_worker_without_a_server_says_at_once_that_it_waits(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin:/bin", "SUPERVISOR_CACHE_DIR": str(tmp_path), "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    environ |= {"SUPERVISOR_MODEL": "standin", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    worker = subprocess.Popen([sys.executable, str(ROOT / "worker_main.py")], env=environ, stderr=subprocess.PIPE)
    try:
        assert worker.stderr is not None
        line = worker.stderr.readline().decode()
    finally:
        worker.kill()
        worker.communicate()
    assert " INFO no Temporal server at 127.0.0.1:1 (connection refused): start one with `" in line
    assert "temporal-supervisor serve`, or set TEMPORAL_ADDRESS" in line
    assert line.rstrip().endswith("trying again for 60 s")


# --- telemetry ---------------------------------------------------------------------------------------


AT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin is not supported"),
        ({**AT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "use http/protobuf, on port 4318"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "write http://host:4318"),
    ],
)
def test_what_is_not_supported_is_named(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        configure("test", environ)


@pytest.mark.parametrize("off", [{}, {**AT, "OTEL_SDK_DISABLED": "true"}, {**AT, "OTEL_TRACES_EXPORTER": "none"}])
def test_without_being_asked_nothing_is_set_up(off: dict[str, str]) -> None:
    before = trace.get_tracer_provider()
    assert configure("test", off)()
    assert trace.get_tracer_provider() is before


def test_a_signal_that_is_slow_to_end_does_not_cost_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    never, sent = threading.Event(), threading.Event()
    monkeypatch.setattr(limits, "TRACES_WAIT", timedelta(seconds=0.2))
    monkeypatch.setattr(telemetry, "_set_up_traces", lambda resource: never.wait)
    monkeypatch.setattr(telemetry, "_set_up_metrics", lambda resource: sent.set)
    assert not configure("test", AT, measured=True)()
    assert sent.is_set()
    never.set()


def test_the_sdks_own_metrics_go_to_the_same_collector() -> None:
    environ = {**AT, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}
    sent = core_metrics(environ)
    assert sent is not None
    assert sent.metric_periodicity is not None
    assert (sent.url, sent.http, sent.headers) == ("http://collector:4318/v1/metrics", True, {"x-key": "a b"})
    assert sent.metric_periodicity.total_seconds() == 5
    assert core_metrics({**environ, "OTEL_METRICS_EXPORTER": "none"}) is None
    with pytest.raises(ValueError, match="OTEL_METRIC_EXPORT_INTERVAL=5s: write milliseconds"):
        core_metrics({**environ, "OTEL_METRIC_EXPORT_INTERVAL": "5s"})
