"""Turning what activities and children raise into the typed errors of the contract."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    TimeoutError,
    is_cancelled_exception,
)

from supervision.contract.result import Problem

ACCOUNT = ("ProviderAuthentication", "ProviderBilling")
"""Errors that a person must mend at the provider: fatal before the first finding, waited out after it."""

FATAL = (*ACCOUNT, "ProviderRejected")
"""Errors of a model call that say something about the provider or the request, not about the subtask."""

RESUMABLE = ("CircuitOpen", "BudgetExhausted", *ACCOUNT)
"""Ends of an attempt that are no failure of its work: it goes on from where it stood."""

_WORLD = ("ArtifactUnavailable", "ArtifactMissing", "ArtifactTooLarge")


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


def model_problem(error: ActivityError) -> Problem:
    """Why a model call failed for good."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        kind = cause.type or "ModelUnavailable"
        if kind in FATAL or kind in _WORLD or kind == "CircuitOpen":
            return Problem(type=kind, message=cause.message)
        return Problem(type="ModelUnavailable", message=f"{kind}: {cause.message}")
    if isinstance(cause, TimeoutError):
        return Problem(type="Timeout", message="the model did not answer in the time that was left")
    return Problem(type="ModelUnavailable", message=str(cause or error))


def problem(error: BaseException) -> Problem:
    """What went wrong, from the innermost failure that says so."""
    seen: BaseException = error
    while isinstance(seen, FailureError) and not isinstance(seen, ApplicationError) and seen.cause:
        seen = seen.cause
    if isinstance(seen, ApplicationError):
        return Problem(type=seen.type or "Error", message=seen.message)
    if isinstance(seen, TimeoutError):
        return Problem(type="Timeout", message=seen.message)
    return Problem(type=type(seen).__name__, message=str(seen))


def run_error(type: str) -> str:
    """The run's error type for a model call that failed for good, out of the contract's names."""
    names = {
        "ProviderBilling": "ProviderRejected",
        "Timeout": "DeadlineExceeded",
        "ModelUnavailable": "ProviderRejected",
    }
    return names.get(type, type)


def remaining_seconds(error: BaseException) -> float:
    """How long a provider's breaker stays open, from the details of its error."""
    cause = error.cause if isinstance(error, FailureError) and not isinstance(error, ApplicationError) else error
    details = cause.details if isinstance(cause, ApplicationError) else ()
    first = details[0] if details else None
    value = first.get("remaining") if isinstance(first, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
