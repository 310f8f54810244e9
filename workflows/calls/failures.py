"""The errors of activities and children as typed problems, or as cancellations."""

import asyncio

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    RetryState,
    is_cancelled_exception,
)
from temporalio.exceptions import TimeoutError as TemporalTimeout

from supervision.base.errors import ErrorKind
from supervision.contract.result import Problem


class CallFailed(Exception):
    """An activity failed for good; `retry_after` is how many seconds a provider's breaker stays open."""

    def __init__(self, problem: Problem, retry_after: float = 0.0) -> None:
        super().__init__(f"{problem.type}: {problem.message}")
        self.problem = problem
        self.retry_after = retry_after


def cancelled(error: BaseException) -> bool:
    """True if `error` is a cancellation, in whichever form it arrives."""
    return isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error)


def problem_of(error: FailureError) -> Problem:
    """Returns what went wrong, from the innermost failure that says so.

    A call whose time was over before its next attempt is a timeout: the server ends it with the failure of the last
    attempt, which the message names.
    """
    cause = _innermost(error)
    if isinstance(cause, ApplicationError):
        kind, parts = ErrorKind(cause.type or ""), [cause.message]
        if kind is ErrorKind.UNEXPECTED:
            # Of an input that does not fit the activity only the cause says what is wrong with it.
            parts = [cause.type or "", cause.message, "" if cause.type else str(cause.cause or "")]
        problem = Problem(type=kind, message=": ".join(filter(None, parts)))
    elif isinstance(cause, TemporalTimeout):
        problem = Problem(type=ErrorKind.TIMEOUT, message=cause.message)
    else:
        problem = Problem(type=ErrorKind.UNEXPECTED, message=f"{type(cause).__name__}: {cause}")
    if isinstance(error, ActivityError) and error.retry_state is RetryState.TIMEOUT:
        return Problem(type=ErrorKind.TIMEOUT, message=f"{problem.type}: {problem.message}")
    return problem


def details_of(error: FailureError) -> object:
    """Returns the first detail that the innermost failure carries, a timeout's its last heartbeat; None without one."""
    cause = _innermost(error)
    if isinstance(cause, TemporalTimeout):
        return cause.last_heartbeat_details[0] if cause.last_heartbeat_details else None
    return cause.details[0] if isinstance(cause, ApplicationError) and cause.details else None


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, FailureError) and not isinstance(error, ApplicationError) and error.cause:
        error = error.cause
    return error
