"""One command: it runs to an exit code, and whatever goes wrong becomes one sentence on standard error."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from activities.store.artifacts import ArtifactMissing, ArtifactTooLarge, ArtifactUnavailable
from console.access import Access
from console.terminal import print_err, safe_line
from runtime.connection import ConnectionFailed
from runtime.imports import INTERRUPTED, end_imports
from runtime.server.embedded_server import ServerFailed
from runtime.server.temporal_binary import TemporalNotFound
from supervision.contract.request import describe_errors
from supervision.errors import SupervisionError

DONE = 0
FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
CANCELLED = 4

_SENTENCE_CHARS = 1500
_SERVER_AWAY = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.PERMISSION_DENIED,
    RPCStatusCode.UNAUTHENTICATED,
)


class CommandFailed(Exception):
    """The command ends with `code`; the message is one sentence that says what to do."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass
class Command:
    """The state that all commands share: the server to connect to, and a flag for tracebacks."""

    access: Access = field(default_factory=Access)
    debug: bool = False

    def run(self, work: Callable[[], Coroutine[Any, Any, int]]) -> int:
        """Runs `work` and returns its exit code, or that of its failure, which is printed to standard error."""
        _without_logs(self.debug)
        try:
            end_imports()
            return asyncio.run(work())
        except (Exception, KeyboardInterrupt) as error:
            failure = explain(error)
            if self.debug:
                print_err("".join(traceback.format_exception(error)))
            if failure.message:
                print_err(f"error: {safe_line(failure.message, _SENTENCE_CHARS)}")
            return failure.code
        finally:
            self.access.close()


def explain(error: BaseException) -> CommandFailed:
    """Returns the sentence and the exit code for anything that a command raises."""
    if isinstance(error, CommandFailed):
        return error
    if isinstance(error, RPCError):
        return _explain_rpc(error)
    if isinstance(error, (ConnectionFailed, ArtifactUnavailable, ServerFailed, TemporalNotFound)):
        return CommandFailed(UNREACHABLE, str(error))
    if isinstance(error, ValidationError):
        return CommandFailed(BAD_INPUT, f"settings: {describe_errors(error)}")
    if isinstance(error, SupervisionError):
        return CommandFailed(BAD_INPUT, error.message)
    if isinstance(error, (ArtifactTooLarge, ArtifactMissing)):
        return CommandFailed(FAILED, str(error))
    if isinstance(error, (ValueError, OSError)):
        return CommandFailed(BAD_INPUT, str(error) or type(error).__name__)
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
        return CommandFailed(INTERRUPTED, "")
    text = str(error) or type(error).__name__
    return CommandFailed(FAILED, f"something unexpected happened ({text}): run it again with --debug to see where")


def _explain_rpc(error: RPCError) -> CommandFailed:
    if error.status is RPCStatusCode.INVALID_ARGUMENT:
        return CommandFailed(BAD_INPUT, f"the Temporal server refuses this: {error.message}")
    if error.status in _SERVER_AWAY:
        return CommandFailed(UNREACHABLE, f"the Temporal server does not answer ({error.message}): try again")
    return CommandFailed(FAILED, f"the Temporal server says: {error.message}")


def _without_logs(debug: bool) -> None:
    """Stops SDK and exporters from writing their own retries to standard error: commands say it in a sentence."""
    if not debug:
        for name in ("opentelemetry", "temporalio"):
            logging.getLogger(name).addHandler(logging.NullHandler())  # else Python prints what has no handler
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)), error_if_already_set=False)
