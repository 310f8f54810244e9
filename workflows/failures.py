"""Turning what activities and children raise into the typed errors of the contract."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

from supervision.contract.result import Problem
from supervision.errors import FATAL, STORE, ErrorKind

T = TypeVar("T")


async def wrapped(local_activity: Awaitable[T]) -> T:
    """The result of a local activity; its failure as an ActivityError, as with any other: the SDK raises it bare."""
    try:
        return await local_activity
    except ActivityError:
        raise
    except FailureError as error:
        raise ActivityError(
            "Local activity failed",
            scheduled_event_id=0,
            started_event_id=0,
            identity="",
            activity_type="",
            activity_id="",
            retry_state=None,
        ) from error


def cancelled(error: BaseException) -> bool:
    """Whether `error` is a cancellation, in whichever form it arrives."""
    return isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error)


def went_silent(error: ActivityError) -> bool:
    """True if the last attempt's process died or froze: its heartbeats ceased."""
    return isinstance(error.cause, TimeoutError) and error.cause.type is TimeoutType.HEARTBEAT


def model_problem(error: ActivityError) -> Problem:
    """Why a model call failed for good."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        kind = ErrorKind(cause.type or "")
        if kind in FATAL | STORE or kind is ErrorKind.CIRCUIT_OPEN:
            return Problem(type=kind, message=cause.message)
        return Problem(type=ErrorKind.MODEL_UNAVAILABLE, message=f"{cause.type}: {cause.message}")
    if isinstance(cause, TimeoutError):
        return Problem(type=ErrorKind.TIMEOUT, message="the model did not answer in the time that was left")
    return Problem(type=ErrorKind.MODEL_UNAVAILABLE, message=str(cause or error))


def problem(error: BaseException) -> Problem:
    """What went wrong, from the innermost failure that says so."""
    seen: BaseException = error
    while isinstance(seen, FailureError) and not isinstance(seen, ApplicationError) and seen.cause:
        seen = seen.cause
    if isinstance(seen, ApplicationError):
        kind = ErrorKind(seen.type or "")
        unknown = kind is ErrorKind.UNEXPECTED and seen.type is not None
        return Problem(type=kind, message=f"{seen.type}: {seen.message}" if unknown else seen.message)
    if isinstance(seen, TimeoutError):
        return Problem(type=ErrorKind.TIMEOUT, message=seen.message)
    return Problem(type=ErrorKind.UNEXPECTED, message=f"{type(seen).__name__}: {seen}")


def remaining_seconds(error: BaseException) -> float:
    """How long a provider's breaker stays open, from the details of its error."""
    cause = error.cause if isinstance(error, FailureError) and not isinstance(error, ApplicationError) else error
    details = cause.details if isinstance(cause, ApplicationError) else ()
    first = details[0] if details else None
    value = first.get("remaining") if isinstance(first, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
