"""How workflows call activities: queue, timeouts, retries, and the label in the Web UI.

Every call returns a reply, or raises CallFailed or asyncio.CancelledError.

Model calls get all the time that the run has left: a shorter limit would cut calls in flight and pay for them again.
One attempt is bounded by its own timeout, the heartbeat and the idle watchdog.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from activities.agent.tool_calls import ToolActivities
    from activities.contracts.run_contracts import ChildRef, Notice, SupervisorCall
    from activities.contracts.turn_contracts import ToolInput, ToolReply, TurnInput
    from activities.run.notices import NoticeActivities
    from supervision.agent.turn_rules import attempt_time
    from supervision.base import limits
    from supervision.base.errors import ErrorKind, call_kind
    from supervision.base.queues import fairness_key
    from supervision.base.text import label
    from supervision.contract.result import Problem
    from supervision.contract.usage import Usage
    from workflows.calls.failures import CallFailed, cancelled, details_of, problem_of
    from workflows.run_context import let_ready_tasks_finish


class Paid(Protocol):
    """A reply to a model call, with what it consumed."""

    usage: Usage


T = TypeVar("T")
P = TypeVar("P", bound=Paid)
Book = Callable[[Usage], None]

# Errors that say of themselves that they are lasting are not listed. These are raised where they cannot: by the SDK
# (an input that does not fit the activity has no type) and by servers, for what no other attempt changes.
_LASTING = ["", "ValidationError", "PayloadsTooLarge", ErrorKind.PAYLOAD_TOO_LARGE]

_MODEL_RETRY = RetryPolicy(
    initial_interval=limits.MODEL_RETRY_INITIAL,
    backoff_coefficient=limits.MODEL_RETRY_FACTOR,
    maximum_interval=limits.MODEL_RETRY_MAX,
    non_retryable_error_types=_LASTING,
)
_PAUSED = Problem(type=ErrorKind.PAUSED, message="the run was paused")
_STORE_RETRY = RetryPolicy(
    initial_interval=limits.STORE_RETRY_INITIAL,
    maximum_interval=limits.STORE_RETRY_MAX,
    maximum_attempts=limits.STORE_ATTEMPTS,
    non_retryable_error_types=_LASTING,
)
_TOOL_RETRY = RetryPolicy(initial_interval=limits.TOOL_RETRY_INITIAL, maximum_interval=limits.STORE_RETRY_MAX)


async def run_tool(payload: ToolInput, queue: str, time: timedelta) -> ToolReply:
    """Returns the output of one tool call, tried until a Worker has the store and the team of the run.

    One attempt may take that time. How often the tool itself may begin is the activity's to count.
    """
    summary = label(f"{payload.call.name}: {payload.call.preview}", limits.LINE_BYTES)
    return await reply_of(
        workflow.execute_activity_method(
            ToolActivities.run_tool,
            payload,
            task_queue=queue,
            start_to_close_timeout=time + limits.TOOL_MARGIN,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            retry_policy=_TOOL_RETRY,
            summary=summary,
        )
    )


async def reply_of(call: Awaitable[T]) -> T:
    """Awaits an activity. A cancelled one ends like any other cancelled await, so that callers need one clause."""
    try:
        return await call
    except FailureError as error:
        if cancelled(error):
            raise asyncio.CancelledError from error
        raise CallFailed(problem_of(error)) from error


async def model_call(
    activity: str,
    payload: TurnInput | SupervisorCall,
    reply: type[P],
    summary: str,
    max_tokens: int,
    expires_at: datetime,
    queue: str,
    book: Book,
    stopped: Callable[[], bool] | None = None,
) -> P:
    """Returns the reply to a model call; its problem is of a kind that the work which needs the call can end with.

    It is `Paused` if the call is `stopped` before its reply.

    `book` gets what it consumed, whatever becomes of it: a cancelled call ends at once, and a reply that comes all
    the same is paid.
    """
    call: workflow.ActivityHandle[P] = workflow.start_activity(
        activity,
        payload,
        result_type=reply,
        task_queue=queue,
        start_to_close_timeout=attempt_time(max_tokens),
        # Never nothing: a late call fails by its timeout, not by a bad command.
        schedule_to_close_timeout=max(expires_at - workflow.now(), limits.LEAST_CALL_TIME),
        heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
        retry_policy=_MODEL_RETRY,
        summary=summary,
        priority=Priority(
            fairness_key=fairness_key(payload.run.run_id)
        ),  # behind a rate limit runs take turns, as whole trees
        # Not awaited, but the reply to a call that was answered meanwhile is not dropped.
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
    watch = asyncio.create_task(_stop_when(stopped, call)) if stopped else None
    try:
        # Shielded: the SDK drops the result of a call that is cancelled in the workflow task that brings it.
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
        problem = _PAUSED if _was_stopped(watch) else failed.problem
        if problem.type is ErrorKind.TIMEOUT:
            message = f"the model gave no answer in the time that was left ({problem.message})"
        elif call_kind(problem.type) is not problem.type and problem.type is not ErrorKind.UNEXPECTED:
            message = f"{problem.type}: {problem.message}"
        else:
            message = problem.message
        details = _details(failed.__cause__)
        remaining = details.get("remaining")  # of the time that the provider's breaker stays open
        seconds = float(remaining) if isinstance(remaining, (int, float)) else 0.0
        book(_spent(details))
        raise CallFailed(Problem(type=call_kind(problem.type), message=message), seconds) from failed
    book(answer.usage)
    return answer


async def _stop_when(stopped: Callable[[], bool], call: "asyncio.Future[P]") -> bool:
    """Cancels a call when it is to be stopped: True if it did. Its end is awaited: it may be answered all the same."""
    await workflow.wait_condition(lambda: stopped() or call.done())
    await let_ready_tasks_finish()
    return not call.done() and call.cancel()


def _was_stopped(watch: asyncio.Task[bool] | None) -> bool:
    return watch is not None and watch.done() and watch.result()


def _book_reply(call: "asyncio.Future[P]", book: Book) -> None:
    if not call.cancelled() and call.exception() is None:
        book(call.result().usage)


def _details(error: BaseException | None) -> dict[str, JsonValue]:
    details = details_of(error) if isinstance(error, FailureError) else None
    return details if isinstance(details, dict) else {}


def _spent(details: dict[str, JsonValue]) -> Usage:
    """Returns what the attempts at a call consumed that brought no answer."""
    try:
        return Usage.model_validate(details.get("spent") or {})
    except ValueError:
        return Usage()


async def with_store(
    activity: Callable[..., Coroutine[Any, Any, T]], timeout: timedelta, summary: str, *arguments: object
) -> T:
    """Returns the reply to a call that needs the store for a moment; one that is away is waited for."""
    return await reply_of(
        workflow.execute_activity_method(
            activity,
            args=arguments,
            start_to_close_timeout=timeout,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            retry_policy=_STORE_RETRY,
            summary=summary,
        )
    )


async def notify(notice: Notice) -> None:
    """Sends a notice. Raises CallFailed when the last try has failed."""
    await reply_of(
        workflow.execute_activity_method(
            NoticeActivities.notify,
            notice,
            start_to_close_timeout=2 * limits.NOTICE_TIME,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            retry_policy=RetryPolicy(maximum_attempts=limits.NOTICE_ATTEMPTS),
            summary=label(f"notice: {notice.kind} {notice.id or ''}", limits.LINE_BYTES),
        )
    )


async def looked_up(activity: Callable[[Any, ChildRef], Coroutine[Any, Any, T]], child: ChildRef, summary: str) -> T:
    """Returns what is known of a child."""
    return await reply_of(
        workflow.execute_activity_method(
            activity,
            child,
            schedule_to_close_timeout=limits.PUBLISH_TIMEOUT,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            summary=summary,
        )
    )
