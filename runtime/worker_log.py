"""The log of a Worker on its terminal: one line for what is expected, tracebacks and the SDK's own words on demand.

A failed call of a model that Temporal tries again is everyday life, and its message says all; a bug keeps its
traceback.
"""

import logging
import re

from temporalio.exceptions import ApplicationError
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from supervision import limits
from supervision.errors import ErrorKind
from supervision.text import one_line

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_CORE = "temporalio.core"
_EXPECTED = re.compile(r"Activity not found on completion|Task not found|query task not found", re.IGNORECASE)
_AWAY = re.compile(r"poll|gRPC|connect", re.IGNORECASE)
_SERVER_AWAY = "the Temporal server does not answer: trying again; what is finished meanwhile is delivered then"


class ShortLines(logging.Filter):
    """Leaves of each expected failure one line; drops what the SDK's core says of every cancelled activity."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns False for records that say nothing to an operator; shortens the others in place."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ApplicationError) and ErrorKind(error.type or "") is not ErrorKind.UNEXPECTED:
            again = "is not tried again" if error.non_retryable else "is tried again"
            record.msg, record.args = f"{_subject(record)} {again}: {error.type}: {error.message}", ()
            record.exc_info = record.exc_text = None
        if not record.name.startswith(_CORE):
            return True
        text = record.getMessage()
        if _EXPECTED.search(text):
            return False
        away = record.levelno <= logging.WARNING and _AWAY.search(text)
        record.msg, record.args = _SERVER_AWAY if away else one_line(text, limits.COMPLAINT_BYTES), ()
        return True


def _subject(record: logging.LogRecord) -> str:
    """Returns the activity that a record is about, as `t1/1 call_model`."""
    info = getattr(record, "temporal_activity", None) or {}
    return one_line(f"{info.get('workflow_id', '')} {info.get('activity_type', 'it')}", limits.COMPLAINT_BYTES)


def configure_log(debug: bool) -> None:
    """Sets up this process's log; with `debug` all that the SDK and Python have to say."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    if not debug:
        handler.addFilter(ShortLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    core = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
        forwarding=LogForwardingConfig(logger=logging.getLogger(_CORE)),
    )
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=core)), error_if_already_set=False)
