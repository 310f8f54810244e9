"""Traces and metrics over OTLP, configured by OpenTelemetry's own `OTEL_*` variables.

They are off by default. A collector that is away or slow costs a bounded queue and a thread; what
does not fit is lost.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from opentelemetry import context, metrics, trace
from opentelemetry.context import Context
from temporalio.client import Client
from temporalio.runtime import OpenTelemetryConfig
from temporalio.service import RPCError

from temporal_supervisor.supervision.base import limits, spans

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

_ENDPOINT, _OTLP_HTTP = "OTEL_EXPORTER_OTLP_ENDPOINT", ("", "http/protobuf")
_WAITS = ("person", "provider", "paused")  # values of the search attribute SupervisorWaiting
_COUNT_TIMEOUT = timedelta(seconds=5)
TRACES_LOST = "the collector that OTEL_* names takes no traces or metrics: they are lost, the work continues"
Signal = Literal["TRACES", "METRICS"]


def is_wanted(signal: Signal, environ: Mapping[str, str]) -> bool:
    """True if the variables ask for a signal.

    Raises ValueError if they ask for something that is not supported.
    """
    address = _collector_address(signal, environ)
    exporter = environ.get(f"OTEL_{signal}_EXPORTER") or ("otlp" if address else "none")
    if exporter == "none" or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if exporter != "otlp":
        raise ValueError(f"OTEL_{signal}_EXPORTER={exporter} is not supported: use otlp or none")
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL")
    if (protocol := own or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")) not in _OTLP_HTTP:
        raise ValueError(f"OTEL_EXPORTER_OTLP_*={protocol} is not supported: use http/protobuf, on port 4318")
    if address and urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"OTEL_EXPORTER_OTLP_* names {address}: write http://host:4318")
    return True


def configure(service: str, environ: Mapping[str, str] = os.environ, *, measured: bool = False) -> Callable[[], bool]:
    """Sets up the process's tracer provider and, if `measured`, its meter provider.

    Returns a function that sends the rest, and returns False if that is lost. Raises ValueError for
    unsupported variables.
    """
    begins = [_set_up_traces] if is_wanted("TRACES", environ) else []
    begins += [_set_up_metrics] if measured and is_wanted("METRICS", environ) else []
    if not begins:
        return lambda: True
    # Imported late: a process without it does not pay for the SDK.
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    resource = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
    shutdowns = [begin(resource) for begin in begins]

    def send_rest() -> bool:
        # An exporter retries for longer than a command may take, and must not cost the other signal its time.
        until = time.monotonic() + limits.TRACES_WAIT.total_seconds()
        endings = [threading.Thread(target=shutdown, daemon=True) for shutdown in shutdowns]
        for ending in endings:
            ending.start()
        for ending in endings:
            ending.join(max(0.0, until - time.monotonic()))
        return not any(ending.is_alive() for ending in endings)

    return send_rest


def core_metrics(environ: Mapping[str, str] = os.environ) -> OpenTelemetryConfig | None:
    """Returns the target of Temporal's own metrics; None without one.

    Raises ValueError like `configure`.
    """
    if not is_wanted("METRICS", environ):
        return None
    from opentelemetry.util.re import parse_env_headers

    headers = environ.get("OTEL_EXPORTER_OTLP_METRICS_HEADERS") or environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    every = environ.get("OTEL_METRIC_EXPORT_INTERVAL") or "60000"
    if not (every.isdecimal() and int(every)):
        raise ValueError(f"OTEL_METRIC_EXPORT_INTERVAL={every}: write milliseconds")
    return OpenTelemetryConfig(
        url=_collector_address("METRICS", environ) or "http://localhost:4318/v1/metrics",
        headers=parse_env_headers(headers, liberal=True),
        metric_periodicity=timedelta(milliseconds=int(every)),
        durations_as_seconds=True,
        http=True,
    )


def instance_tags() -> dict[str, str]:
    """Returns the tag that identifies this process's metrics, for those of the SDK's core."""
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, Resource

    return {SERVICE_INSTANCE_ID: str(Resource.create().attributes[SERVICE_INSTANCE_ID])}


def parent_of(run_id: str, first_run_id: str, place: str) -> Context | None:
    """Returns the context for spans below a run or subtask, even before its own span is written.

    None if this process has no traces.
    """
    sampler = getattr(trace.get_tracer_provider(), "sampler", None)
    if sampler is None:
        return None
    number = spans.trace_id(run_id, first_run_id)
    sampled = sampler.should_sample(None, number, spans.INVOKE_WORKFLOW).decision.is_sampled()
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if sampled else trace.TraceFlags.DEFAULT)
    above = trace.SpanContext(number, spans.span_id(first_run_id, place), is_remote=True, trace_flags=flags)
    return trace.set_span_in_context(trace.NonRecordingSpan(above), Context())


def run_started(run_id: str, first_run_id: str, began_at: int) -> None:
    """Writes the span of a run's start, linked to the client's present span."""
    parent, beside = parent_of(run_id, first_run_id, run_id), trace.get_current_span().get_span_context()
    if parent is not None:
        links, facts = [trace.Link(beside)] if beside.is_valid else [], {spans.CONVERSATION: run_id}
        tracer = trace.get_tracer(spans.SCOPE)
        tracer.start_span(spans.START, parent, trace.SpanKind.CLIENT, facts, links, began_at).end()


def count_waits(client: Client) -> None:
    """Reports the number of waiting runs by kind, as the server lists them.

    Every Worker reports the same numbers.
    """
    loop = asyncio.get_running_loop()

    async def counted(kind: str) -> metrics.Observation:
        query = f"ExecutionStatus = 'Running' AND SupervisorWaiting = '{kind}'"
        found = await client.count_workflows(query, rpc_timeout=_COUNT_TIMEOUT)
        return metrics.Observation(found.count, {spans.KIND: kind})

    async def all_counted() -> Iterable[metrics.Observation]:
        return await asyncio.gather(*map(counted, _WAITS))

    def observe(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:  # in the exporter's thread
        if not loop.is_running():
            return []
        try:  # all kinds or none: the loop may end between two
            return asyncio.run_coroutine_threadsafe(all_counted(), loop).result(_COUNT_TIMEOUT.total_seconds())
        except (RPCError, TimeoutError, CancelledError, RuntimeError):
            return []

    words = "runs that wait, by kind; each Worker reports all of the namespace"
    metrics.get_meter(spans.SCOPE).create_observable_gauge(spans.WAITING, [observe], "{run}", words)


def _collector_address(signal: Signal, environ: Mapping[str, str]) -> str | None:
    if own := environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"):
        return own
    base = environ.get(_ENDPOINT)
    return f"{base.rstrip('/')}/v1/{signal.lower()}" if base else None


def _set_up_traces(resource: "Resource") -> Callable[[], None]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class RunIds(RandomIdGenerator):
        """Gives a span the ids that its context asks for."""

        def generate_trace_id(self) -> int:
            return cast("int | None", context.get_value(spans.TRACE_ID_KEY)) or super().generate_trace_id()

        def generate_span_id(self) -> int:
            return cast("int | None", context.get_value(spans.SPAN_ID_KEY)) or super().generate_span_id()

    provider = TracerProvider(resource=resource, id_generator=RunIds(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _set_up_metrics(resource: "Resource") -> Callable[[], None]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    reader, exemplars = PeriodicExportingMetricReader(OTLPMetricExporter()), AlwaysOffExemplarFilter()
    # without exemplars: a fifth of the cost
    provider = MeterProvider([reader], resource, exemplar_filter=exemplars, shutdown_on_exit=False)
    metrics.set_meter_provider(provider)
    return provider.shutdown
