"""What the variables of OpenTelemetry ask for."""

import pytest
from opentelemetry import trace

from runtime.telemetry import configure, core_metrics

AT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER=zipkin is not supported"),
        ({**AT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "use http/protobuf, on a collector's port 4318"),
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


def test_the_sdks_own_metrics_go_to_the_same_collector() -> None:
    environ = {**AT, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}
    sent = core_metrics(environ)
    assert sent is not None
    assert sent.metric_periodicity is not None
    assert (sent.url, sent.http, sent.headers) == ("http://collector:4318/v1/metrics", True, {"x-key": "a b"})
    assert sent.metric_periodicity.total_seconds() == 5
    assert core_metrics({**environ, "OTEL_METRICS_EXPORTER": "none"}) is None
