"""How a command fails: one sentence and an exit code, whatever was raised below."""

import asyncio
import traceback

from pydantic import ValidationError
from temporalio.service import RPCError, RPCStatusCode

from activities.store.artifacts import ArtifactMissing, ArtifactTooLarge, ArtifactUnavailable
from console.view.safe_text import safe_line
from runtime.connection import ConnectionFailed
from runtime.server.embedded_server import ServerFailed
from runtime.server.temporal_binary import TemporalNotFound
from supervision.contract.request import describe_errors
from supervision.errors import SupervisionError

DONE = 0
FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
CANCELLED = 4
INTERRUPTED = 130

_SENTENCE_CHARS = 1500
_AWAY = (
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


def explain(error: BaseException) -> CommandFailed:
    """The sentence and the exit code for anything that a command raises."""
    if isinstance(error, CommandFailed):
        return error
    if isinstance(error, RPCError):
        return _server_said(error)
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
    what = str(error) or type(error).__name__
    return CommandFailed(FAILED, f"something unexpected happened ({what}): run it again with --debug to see where")


def _server_said(error: RPCError) -> CommandFailed:
    if error.status is RPCStatusCode.INVALID_ARGUMENT:
        return CommandFailed(BAD_INPUT, f"the Temporal server refuses this: {error.message}")
    if error.status in _AWAY:
        return CommandFailed(UNREACHABLE, f"the Temporal server does not answer ({error.message}): try again")
    return CommandFailed(FAILED, f"the Temporal server says: {error.message}")


def sentence(failure: CommandFailed) -> str:
    """The message as one safe line."""
    return safe_line(failure.message, _SENTENCE_CHARS)


def whole_story(error: BaseException) -> str:
    """The traceback, for `--debug`."""
    return "".join(traceback.format_exception(error))
