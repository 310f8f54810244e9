"""Calls of activities: their queue, timeouts, retries, and label in the Web UI.

Every call returns a reply, or raises CallFailed or asyncio.CancelledError.

A model call may take all the time that the run has left: a shorter limit would cut off calls in
flight, which would then be paid again. A single attempt is bounded by its own timeout, the
heartbeat and the idle watchdog.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    RetryState,
    is_cancelled_exception,
)
from temporalio.exceptions import TimeoutError as TemporalTimeout
from temporalio.exceptions import TimeoutType as TemporalTimeoutType

with workflow.unsafe.imports_passed_through():
    from activities.agent.tool_calls import ToolActivities
    from activities.contracts.run_contracts import (
        Notice,
        PersonWords,
        RunRef,
        SupervisorCall,
        WordsInput,
    )
    from activities.contracts.store_contracts import StoreWatch
    from activities.contracts.turn_contracts import (
        BacklogInput,
        FailedCall,
        ToolInput,
        ToolReply,
        TurnInput,
    )
    from activities.run.notices import NoticeActivities
    from activities.run.run_activities import RunActivities
    from activities.store.store_reports import StoreWaits
    from temporal_supervisor.supervision.agent.turn_rules import attempt_time
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, call_kind
    from temporal_supervisor.supervision.base.queues import fairness_key, pool_queue
    from temporal_supervisor.supervision.base.text import label
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.usage import Usage

    from workflows.background import in_background, let_ready_tasks_finish


_LOOK = timedelta(seconds=5)  # at a queue; without it the subtask begins all the same


class CallFailed(Exception):
    """An activity failed for good.

    `retry_after` is the number of seconds for which a provider's breaker stays open.
    """

    def __init__(self, problem: Problem, retry_after: float = 0.0) -> None:
        super().__init__(f"{problem.type}: {problem.message}")
        self.problem = problem
        self.retry_after = retry_after


class Paid(Protocol):
    """A reply to a model call, with its usage."""

    usage: Usage


T = TypeVar("T")
P = TypeVar("P", bound=Paid)
Book = Callable[[Usage], None]

# Errors that say of themselves that they are lasting are not listed. These are raised where they
# cannot: by the SDK (an input that does not fit the activity has no type) and by servers, for what
# no other attempt changes.
_LASTING = ["", "ValidationError", "PayloadsTooLarge", ErrorKind.PAYLOAD_TOO_LARGE]

_MODEL_RETRY = RetryPolicy(
    initial_interval=limits.MODEL_RETRY_INITIAL,
    backoff_coefficient=limits.MODEL_RETRY_FACTOR,
    maximum_interval=limits.MODEL_RETRY_MAX,
    non_retryable_error_types=_LASTING,
)
# Of all model calls alike: else they had that of their workflows, which is for workflow tasks.
_CALL_PRIORITY = 3
_PAUSED = Problem(type=ErrorKind.PAUSED, message="the run was paused")
_STORE_RETRY = RetryPolicy(
    initial_interval=limits.STORE_RETRY_INITIAL,
    maximum_interval=limits.STORE_RETRY_MAX,
    non_retryable_error_types=_LASTING,
)
_TOOL_RETRY = RetryPolicy(
    initial_interval=limits.TOOL_RETRY_INITIAL, maximum_interval=limits.STORE_RETRY_MAX
)


async def run_tool(payload: ToolInput, queue: str, time: timedelta) -> ToolReply:
    """Returns the output of one tool call, retried until a Worker has the run's store and team.

    The tool may take `time` in one attempt. The activity itself limits how often the tool is
    started. Raises CallFailed.
    """
    summary = f"{payload.call.name}: {payload.call.preview}"
    timeout = time + limits.TOOL_MARGIN
    return await _execute(
        ToolActivities.run_tool, [payload], summary, timeout, _TOOL_RETRY, task_queue=queue
    )


async def _execute(
    activity: Callable[..., Coroutine[Any, Any, T]],
    arguments: Sequence[object],
    summary: str,
    timeout: timedelta,
    retry: RetryPolicy,
    **options: Any,
) -> T:
    return await reply_of(
        workflow.execute_activity_method(
            activity,
            args=arguments,
            start_to_close_timeout=timeout,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            retry_policy=retry,
            summary=label(summary, limits.LINE_BYTES),
            **options,
        )
    )


async def reply_of(call: Awaitable[T]) -> T:
    """Returns the result of an activity. Raises CallFailed if it failed.

    A cancelled activity raises CancelledError, as any other await does, so callers need one clause.
    """
    try:
        return await call
    except FailureError as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        raise CallFailed(problem_of(error)) from error


async def model_call(
    activity: str,
    payload: TurnInput | SupervisorCall,
    reply: type[P],
    expires_at: datetime,
    queue: str,
    book: Book,
    stopped: Callable[[], bool] | None = None,
) -> P:
    """Returns the reply to a model call. Raises CallFailed with a kind that work can end with.

    That kind is `Paused` if `stopped` became true before the reply. `book` gets the usage of the
    call, however it ends. A cancelled call ends at once; its reply may still arrive later, and is
    booked then, too.
    """
    call: workflow.ActivityHandle[P] = workflow.start_activity(
        activity,
        payload,
        result_type=reply,
        task_queue=queue,
        start_to_close_timeout=attempt_time(payload.terms.max_tokens),
        # Never nothing: a late call fails by its timeout, not by a bad command.
        schedule_to_close_timeout=max(expires_at - workflow.now(), limits.LEAST_CALL_TIME),
        heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
        retry_policy=_MODEL_RETRY,
        summary=payload.terms.summary,
        # Behind a rate limit runs take turns, as whole trees.
        priority=Priority(
            priority_key=_CALL_PRIORITY, fairness_key=fairness_key(payload.run.run_id)
        ),
        # Not awaited, but the reply to a call that was answered meanwhile is not dropped.
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
    watch = in_background(_stop_when(stopped, call)) if stopped else None
    try:
        # Shielded: the SDK drops the result of a call that is cancelled in the workflow task that
        # brings it.
        answer = await reply_of(asyncio.shield(call))
    except asyncio.CancelledError:
        await let_ready_tasks_finish()
        if call.done():  # also if the reply, a cancellation and a pause come in one workflow task
            _book_reply(call, book)
        else:
            call.cancel()
            call.add_done_callback(lambda call: _book_reply(call, book))
        if _was_stopped(watch):
            raise CallFailed(_PAUSED) from None
        raise
    except CallFailed as failed:
        left = _cost_of(failed)
        book(left.spent)
        problem = _PAUSED if _was_stopped(watch) else _problem_of_call(failed.problem)
        raise CallFailed(problem, left.remaining) from failed
    book(answer.usage)
    return answer


def _problem_of_call(problem: Problem) -> Problem:
    """Returns the problem of a model call, as a kind that work can end with.

    If that kind differs from the original one, the message names the original.
    """
    kind = call_kind(problem.type)
    message = problem.message
    if problem.type is ErrorKind.TIMEOUT:
        message = f"the model gave no answer in the time that was left ({message})"
    elif kind is not problem.type and problem.type is not ErrorKind.UNEXPECTED:
        message = f"{problem.type}: {message}"
    return Problem(type=kind, message=message)


async def _stop_when(stopped: Callable[[], bool], call: "asyncio.Future[P]") -> bool:
    """Cancels a call once `stopped` is true. Returns True if it was cancelled.

    The caller still awaits the call: it may be answered all the same.
    """
    await workflow.wait_condition(lambda: stopped() or call.done())
    await let_ready_tasks_finish()
    return not call.done() and call.cancel()


def _was_stopped(watch: asyncio.Task[bool] | None) -> bool:
    return watch is not None and watch.done() and watch.result()


def _book_reply(call: "asyncio.Future[P]", book: Book) -> None:
    if not call.cancelled() and call.exception() is None:
        book(call.result().usage)


def _cost_of(failed: CallFailed) -> FailedCall:
    """Returns the cost of a failed call, as far as its failure reports it."""
    cause = failed.__cause__
    details = details_of(cause) if isinstance(cause, FailureError) else {}
    try:
        return FailedCall.model_validate(details)
    except ValueError:
        # A call whose last attempt timed out left its heartbeat, perhaps of another version.
        return FailedCall()


async def store_call(
    activity: Callable[..., Coroutine[Any, Any, T]],
    timeout: timedelta,
    summary: str,
    *arguments: object,
    patience: timedelta | None = None,
) -> T:
    """Returns the result of an activity that needs the artifact store.

    It is retried while the store is unavailable: without end, or until `patience` is over. Raises
    CallFailed.
    """
    return await _execute(
        activity, arguments, summary, timeout, _STORE_RETRY, schedule_to_close_timeout=patience
    )


async def await_store(watch: StoreWatch) -> None:
    """Returns when the store holds up none of the calls that have reported to the run."""
    summary = f"wait for the artifact store: {watch.reports[0].why}"
    await _execute(StoreWaits.await_store, [watch], summary, limits.SETUP_TIMEOUT, _STORE_RETRY)


async def pool_backlog(run: RunRef, pool: str) -> float:
    """Returns the seconds that work has waited for the Workers of a pool; 0 if unknown."""
    backlog = BacklogInput(run=run, queue=pool_queue(pool))
    once = RetryPolicy(maximum_attempts=1)
    try:
        return await _execute(
            RunActivities.pool_backlog, [backlog], f"backlog of pool {pool}", _LOOK, once
        )
    except CallFailed:
        return 0.0


async def notify(notice: Notice) -> None:
    """Sends a notice. Raises CallFailed after the last attempt."""
    retry = RetryPolicy(maximum_attempts=limits.NOTICE_ATTEMPTS)
    summary = f"notice: {notice.kind} {notice.id or ''}"
    await _execute(NoticeActivities.notify, [notice], summary, 2 * limits.NOTICE_TIME, retry)


def problem_of(error: FailureError) -> Problem:
    """Returns the problem behind a failure: its innermost cause.

    A call whose time ran out is a timeout, whatever made its last attempt fail: the message names
    that failure.
    """
    cause = _innermost(error)
    if isinstance(cause, ApplicationError):
        problem = _problem_of_application(cause)
    elif isinstance(cause, TemporalTimeout):
        problem = Problem(type=ErrorKind.TIMEOUT, message=cause.message)
    else:
        problem = Problem(type=ErrorKind.UNEXPECTED, message=f"{type(cause).__name__}: {cause}")
    if _ran_out_of_time(error) and problem.type is not ErrorKind.TIMEOUT:
        return Problem(type=ErrorKind.TIMEOUT, message=f"{problem.type}: {problem.message}")
    return problem


def _ran_out_of_time(error: FailureError) -> bool:
    """True if the time for all attempts was over.

    The server reports that in two ways: in the pause before the next attempt as a failure of the
    last one, with a retry state; within an attempt as a timeout that the last failure has caused.
    """
    if not isinstance(error, ActivityError):
        return False
    if error.retry_state is RetryState.TIMEOUT:
        return True
    cause = error.cause
    whole_time = TemporalTimeoutType.SCHEDULE_TO_CLOSE
    return isinstance(cause, TemporalTimeout) and cause.type is whole_time


def _problem_of_application(error: ApplicationError) -> Problem:
    kind = ErrorKind(error.type or "")
    if kind is not ErrorKind.UNEXPECTED:
        return Problem(type=kind, message=error.message)
    parts = [error.type, error.message]
    if not error.type and error.cause:
        # An input that does not fit the activity: only the cause tells what is wrong with it.
        parts.append(str(error.cause))
    return Problem(type=kind, message=": ".join(filter(None, parts)))


def details_of(error: FailureError) -> object:
    """Returns the first detail of the innermost failure, or of the last heartbeat before a timeout.

    None if there are no details.
    """
    cause = _innermost(error)
    details: Sequence[object] = ()
    if isinstance(cause, TemporalTimeout):
        details = cause.last_heartbeat_details
    elif isinstance(cause, ApplicationError):
        details = cause.details
    return details[0] if details else None


def _innermost(error: BaseException) -> BaseException:
    """Returns the innermost cause: an ApplicationError, or an error without a cause."""
    while isinstance(error, FailureError):
        if isinstance(error, ApplicationError) or not error.cause:
            break
        error = error.cause
    return error


async def store_words(run: RunRef, words: list[PersonWords]) -> list[Finding]:
    """Stores texts written by people, and returns each as a finding. Raises CallFailed."""
    summary = "store a reply" if len(words) == 1 else f"store {len(words)} replies"
    said = WordsInput(run=run, words=words)
    return await store_call(RunActivities.keep_words, limits.PUBLISH_TIMEOUT, summary, said)
