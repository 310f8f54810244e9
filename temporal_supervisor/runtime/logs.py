"""The log of a Worker: one line for each step of a run, as text or JSON.

A failed model call that Temporal retries is normal, and its message is enough. A bug keeps its
traceback. Texts may come from others, so nothing in them starts a line or controls a terminal.
"""

import json
import logging
import re
from collections.abc import Callable
from datetime import datetime
from textwrap import indent
from typing import Any, Literal

from temporalio.exceptions import ApplicationError
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    OpenTelemetryConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from temporal_supervisor.runtime.telemetry import TRACES_LOST, instance_tags
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.text import clean, one_line

_CORE = "temporalio.core"
_WARNS = "warning: "
_STEPS = "supervisor"
_LINE_BYTES = 16 * 1024
_EXPECTED = re.compile(
    r"Activity not found on completion|Task not found|query task not found", re.IGNORECASE
)
_AWAY = re.compile(r"poll|gRPC|connect", re.IGNORECASE)
_COLLECTOR = re.compile(r"opentelemetry|metrics? export|OTLP", re.IGNORECASE)
_PLAIN = re.compile(r"[\w./:%@+-]+")
_SAME_OUTAGE = 60.0  # seconds between two lines that the server or the collector is away
_SERVER_AWAY = (
    "the Temporal server does not answer: trying again; "
    "what is finished meanwhile is delivered then"
)


class ShortLines(logging.Filter):
    """Shortens expected failures to one line, and outages to one line a minute.

    Outages are those of the server and of the telemetry collector.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told = {_SERVER_AWAY: 0.0, TRACES_LOST: 0.0}

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns False for records that operators need not see, and shortens others in place."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ApplicationError):
            _shorten_failure(record, error)
        if not record.name.startswith((_CORE, "opentelemetry")):
            return True

        text = record.getMessage()
        is_error = record.levelno >= logging.ERROR
        is_of_collector = _COLLECTOR.search(f"{record.name} {text}") is not None
        if _EXPECTED.search(text):
            return False
        if is_of_collector and not is_error:  # it tries again
            return False

        line = one_line(text, limits.SENTENCE_BYTES)
        if is_of_collector:
            line = TRACES_LOST
        elif not is_error and _AWAY.search(text):
            line = _SERVER_AWAY
        record.msg = line
        record.args = ()
        record.exc_info = None
        return self._is_due(line, record.created)

    def _is_due(self, line: str, now: float) -> bool:
        """True if a line is written: for an outage, once a minute."""
        last = self._told.get(line)
        if last is None:
            return True
        if now - last <= _SAME_OUTAGE:
            return False
        self._told[line] = now
        return True


def _shorten_failure(record: logging.LogRecord, error: ApplicationError) -> None:
    """Makes one line of an expected failure; others keep their traceback."""
    if ErrorKind(error.type or "") is ErrorKind.UNEXPECTED:
        return
    info = getattr(record, "temporal_activity", None) or {}
    call = f"{info.get('workflow_id', '')} {info.get('activity_type', 'it')}"
    again = "is not tried again" if error.non_retryable else "is tried again"
    subject = one_line(call, limits.SENTENCE_BYTES)
    record.msg = f"{subject} {again}: {error.type}: {error.message}"
    record.args = ()
    record.exc_info = record.exc_text = None


class CleanLines(logging.Formatter):
    """Formats a record as one line: local time, level, message, fields.

    Escape sequences are removed, and tracebacks are indented.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record, followed by its traceback."""
        fields = [f"{name}={_word(value)}" for name, value in _fields(record).items()]
        text = clean(" ".join([record.getMessage(), *fields]))
        name = "" if record.name.startswith(_STEPS) else f" {record.name}:"
        line = f"{_time(record)} {record.levelname}{name} {one_line(text, _LINE_BYTES)}"
        return "\n".join(filter(None, [line, _traceback(self, record)]))


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object on a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line of a record."""
        shown: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": one_line(clean(record.getMessage()), _LINE_BYTES),
        }
        for name, value in _fields(record).items():
            shown[name] = clean(value) if isinstance(value, str) else value
        traceback = _traceback(self, record)
        if traceback:
            shown["traceback"] = traceback
        return json.dumps(shown)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "fields", {})


def _word(value: object) -> str:
    """Returns a value as one word; other texts are quoted, so that they look like no field."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(clean(text), ensure_ascii=False)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Returns the indented traceback of a record; empty without one."""
    if not record.exc_info:
        return ""
    return indent(clean(formatter.formatException(record.exc_info)), "  ")


def configure(
    form: Literal["text", "json"], metrics: OpenTelemetryConfig | None, debug: bool = False
) -> Callable[[str], None]:
    """Sets up this process's log and the SDK's; `debug` adds all that SDK and Python log.

    Returns a function that writes a line for the operator.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else CleanLines())
    if not debug:
        handler.addFilter(ShortLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    steps = logging.getLogger(_STEPS)
    steps.setLevel(logging.INFO)
    core = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
        forwarding=LogForwardingConfig(logger=logging.getLogger(_CORE)),
    )
    telemetry = TelemetryConfig(
        logging=core, metrics=metrics, global_tags=instance_tags() if metrics else {}
    )
    Runtime.set_default(Runtime(telemetry=telemetry), error_if_already_set=False)
    return _write_for_operator


def _write_for_operator(line: str) -> None:
    """Logs a line for the operator; warnings are logged as such."""
    level = logging.WARNING if line.startswith(_WARNS) else logging.INFO
    logging.getLogger(_STEPS).log(level, line.removeprefix(_WARNS))


def write_last_line(line: str) -> None:
    """Logs the reason for the end of the process as an error."""
    logging.getLogger(_STEPS).error(line)
