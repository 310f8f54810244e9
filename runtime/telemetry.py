"""Tracing by OpenTelemetry's own `OTEL_*` variables; off unless they ask for it. No prompt text in spans."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(frozen=True)
class Telemetry:
    """Plugins for the Temporal client, and a function to call before the process ends."""

    plugins: list[Any] = field(default_factory=list)
    shutdown: Callable[[], None] = lambda: None


def wanted(environ: Mapping[str, str]) -> str | None:
    """Returns the exporter that the variables name, `otlp` or `console`; None if tracing is off."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if named == "none":
        return None
    return named or ("otlp" if any(environ.get(name) for name in _ENDPOINTS) else None)


def configure(service: str, environ: Mapping[str, str] = os.environ) -> Telemetry:
    """Sets up the process's tracer provider. Raises ValueError for an exporter that is not supported."""
    exporter = wanted(environ)
    if exporter is None:
        return Telemetry()
    # Imported late: a process without tracing does not pay for the SDK.
    from opentelemetry import trace
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    from runtime.experimental import OpenTelemetryPlugin, create_tracer_provider

    spans: SpanExporter
    if exporter == "console":
        spans = ConsoleSpanExporter()
    elif exporter == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        spans = OTLPSpanExporter()
    else:
        raise ValueError(f"OTEL_TRACES_EXPORTER={exporter} is not supported: use otlp, console or none")
    resource = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
    provider = create_tracer_provider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    return Telemetry([OpenTelemetryPlugin(add_temporal_spans=True)], provider.shutdown)
