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

_PROTOCOLS = ("", "http/protobuf")  # of OTLP
_WAITS = ("person", "provider", "paused")  # values of the search attribute SupervisorWaiting
_COUNT_TIMEOUT = timedelta(seconds=5)
TRACES_LOST = (
    "the collector that OTEL_* names takes no traces or metrics: they are lost, the work continues"
)
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
    protocol = own or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    if protocol not in _PROTOCOLS:
        helps = "use http/protobuf, on port 4318"
        raise ValueError(f"OTEL_EXPORTER_OTLP_*={protocol} is not supported: {helps}")
    if address and urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"OTEL_EXPORTER_OTLP_* names {address}: write http://host:4318")
    return True


def configure(
    service: str,
    environ: Mapping[str, str] = os.environ,
    *,
    measured: bool = False,
) -> Callable[[], bool]:
    """Sets up the process's tracer provider and, if `measured`, its meter provider.

    Returns a function that sends the rest, and returns False if that is lost. Raises ValueError for
    unsupported variables.
    """
    set_ups = []
    if is_wanted("TRACES", environ):
        set_ups.append(_set_up_traces)
    if measured and is_wanted("METRICS", environ):
        set_ups.append(_set_up_metrics)
    if not set_ups:
        return lambda: True

    # Imported late: a process without it does not pay for the SDK.
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    resource = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
    shutdowns = [set_up(resource) for set_up in set_ups]

    def send_rest() -> bool:
        # An exporter retries for longer than a command may take, and must not cost the other signal
        # its time.
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

    own = environ.get("OTEL_EXPORTER_OTLP_METRICS_HEADERS")
    headers = own or environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
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
    trace_id = spans.trace_id(run_id, first_run_id)
    result = sampler.should_sample(None, trace_id, spans.INVOKE_WORKFLOW)
    flags = trace.TraceFlags.DEFAULT
    if result.decision.is_sampled():
        flags = trace.TraceFlags.SAMPLED
    above = trace.SpanContext(
        trace_id,
        spans.span_id(first_run_id, place),
        is_remote=True,
        trace_flags=trace.TraceFlags(flags),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(above), Context())


def run_started(run_id: str, first_run_id: str, began_at: int) -> None:
    """Writes the span of a run's start, linked to the client's present span."""
    parent = parent_of(run_id, first_run_id, run_id)
    if parent is None:
        return
    present = trace.get_current_span().get_span_context()
    span = trace.get_tracer(spans.SCOPE).start_span(
        spans.START,
        parent,
        kind=trace.SpanKind.CLIENT,
        attributes={spans.CONVERSATION: run_id},
        links=[trace.Link(present)] if present.is_valid else [],
        start_time=began_at,
    )
    span.end()


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

    # in the exporter's thread
    def observe(_: metrics.CallbackOptions) -> Iterable[metrics.Observation]:
        if not loop.is_running():
            return []
        try:  # all kinds or none: the loop may end between two
            counting = asyncio.run_coroutine_threadsafe(all_counted(), loop)
            return counting.result(_COUNT_TIMEOUT.total_seconds())
        except (RPCError, TimeoutError, CancelledError, RuntimeError):
            return []

    meter = metrics.get_meter(spans.SCOPE)
    words = "runs that wait, by kind; each Worker reports all of the namespace"
    meter.create_observable_gauge(spans.WAITING, [observe], "{run}", words)


def _collector_address(signal: Signal, environ: Mapping[str, str]) -> str | None:
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    if own:
        return own
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"{base.rstrip('/')}/v1/{signal.lower()}" if base else None


def _set_up_traces(resource: "Resource") -> Callable[[], None]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class RunIds(RandomIdGenerator):
        """Gives a span the ids that its context asks for."""

        def generate_trace_id(self) -> int:
            wanted = cast("int | None", context.get_value(spans.TRACE_ID_KEY))
            return wanted or super().generate_trace_id()

        def generate_span_id(self) -> int:
            wanted = cast("int | None", context.get_value(spans.SPAN_ID_KEY))
            return wanted or super().generate_span_id()

    provider = TracerProvider(resource=resource, id_generator=RunIds(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _set_up_metrics(resource: "Resource") -> Callable[[], None]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    provider = MeterProvider(
        [PeriodicExportingMetricReader(OTLPMetricExporter())],
        resource,
        exemplar_filter=AlwaysOffExemplarFilter(),  # a fifth of the cost
        shutdown_on_exit=False,
    )
    metrics.set_meter_provider(provider)
    return provider.shutdown
