"""Tracing by OpenTelemetry's own `OTEL_*` variables, off unless they ask for it; and the log of a Worker.

No prompt text is in spans. The log has one line for what is expected: a failed call of a model that Temporal tries
again is everyday life, and its message says all. A bug keeps its traceback.
"""

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from supervision.base import limits
from supervision.base.errors import ErrorKind
from supervision.base.text import clean, one_line

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_QUERIES = ("QueryWorkflow:", "HandleQuery:")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_CORE = "temporalio.core"
_LINE_BYTES = 16 * 1024
_EXPECTED = re.compile(r"Activity not found on completion|Task not found|query task not found", re.IGNORECASE)
_AWAY = re.compile(r"poll|gRPC|connect", re.IGNORECASE)
_SAME_OUTAGE = 30.0  # seconds between two lines of the SDK that it has no answer
_EXPORTER = "opentelemetry.exporter"
TRACES_LOST = "the collector of traces that OTEL_* names takes none: they are lost, the work continues"
_SERVER_AWAY = "the Temporal server does not answer: trying again; what is finished meanwhile is delivered then"


@dataclass(frozen=True)
class Telemetry:
    """Plugins for the Temporal client, and `shutdown`: it sends the last spans, and returns False if they are lost."""

    plugins: list[Any] = field(default_factory=list)
    shutdown: Callable[[], bool] = lambda: True


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
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

    from runtime.sdk_patches import tracer_provider, tracing_plugin

    class RunSpans(BatchSpanProcessor):
        """Leaves out queries: a followed run is queried several times a second, each time in a trace of its own."""

        def on_end(self, span: ReadableSpan) -> None:
            if not span.name.startswith(_QUERIES):
                super().on_end(span)

    spans: SpanExporter
    if exporter == "console":
        spans = ConsoleSpanExporter()
    elif exporter == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        spans = OTLPSpanExporter()
    else:
        raise ValueError(f"OTEL_TRACES_EXPORTER={exporter} is not supported: use otlp, console or none")
    resource = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
    provider = tracer_provider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(RunSpans(spans))
    trace.set_tracer_provider(provider)
    return Telemetry([tracing_plugin()], lambda: _in_time(provider.shutdown))


def _in_time(shutdown: Callable[[], None]) -> bool:
    """Returns False if it does not end soon: an exporter retries for longer than a command may take."""
    ending = threading.Thread(target=shutdown, daemon=True)
    ending.start()
    ending.join(limits.TRACES_WAIT.total_seconds())
    return not ending.is_alive()


class ShortLines(logging.Filter):
    """Makes each expected failure one line, and each outage of the server or of a collector of traces."""

    _traces_lost = False
    _away_at = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns False for records that say nothing to an operator; shortens the others in place."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ApplicationError) and ErrorKind(error.type or "") is not ErrorKind.UNEXPECTED:
            again = "is not tried again" if error.non_retryable else "is tried again"
            record.msg, record.args = f"{_subject(record)} {again}: {error.type}: {error.message}", ()
            record.exc_info = record.exc_text = None
        if record.name.startswith(_EXPORTER):
            logged, self._traces_lost = self._traces_lost, self._traces_lost or record.levelno >= logging.ERROR
            record.msg, record.args = TRACES_LOST, ()
            return self._traces_lost and not logged
        if not record.name.startswith(_CORE):
            return True
        text = record.getMessage()
        if _EXPECTED.search(text):
            return False
        away = record.levelno <= logging.WARNING and _AWAY.search(text)
        record.msg, record.args = _SERVER_AWAY if away else one_line(text, limits.SENTENCE_BYTES), ()
        if not away:
            return True
        last, self._away_at = self._away_at, record.created
        return record.created - last > _SAME_OUTAGE


class CleanLines(logging.Formatter):
    """Writes each message on one line without escape sequences, as texts may be of others; indents tracebacks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Returns the line of a record."""
        record.message = one_line(clean(record.message), _LINE_BYTES)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Returns a traceback."""
        return indent(clean(super().formatException(ei)), "  ")


def _subject(record: logging.LogRecord) -> str:
    """Returns the activity that a record is about, as `t1/1 call_model`."""
    info = getattr(record, "temporal_activity", None) or {}
    return one_line(f"{info.get('workflow_id', '')} {info.get('activity_type', 'it')}", limits.SENTENCE_BYTES)


def configure_log(debug: bool) -> None:
    """Sets up this process's log; with `debug` all that the SDK and Python have to say."""
    handler = logging.StreamHandler()
    handler.setFormatter(CleanLines(_FORMAT))
    if not debug:
        handler.addFilter(ShortLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    core = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
        forwarding=LogForwardingConfig(logger=logging.getLogger(_CORE)),
    )
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=core)), error_if_already_set=False)
