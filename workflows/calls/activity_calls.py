"""How workflows call activities: queue, timeouts, retries and the label that the Web UI shows, in one place.

Every call returns a reply, or raises CallFailed, or asyncio.CancelledError: no failure of Temporal's own gets further.

Model calls get the whole time that the run has left, because a shorter limit would cut calls in flight and pay
for them again; one attempt is bounded by its own timeout, the heartbeat and the idle watchdog.
"""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import TypedDict, TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from activities.agent.agent_turn import AgentTurnActivities
    from activities.agent.tool_calls import ToolActivities
    from activities.contracts.judgement_contracts import (
        JudgeInput,
        JudgeReply,
        RefineInput,
        RefineReply,
        ReviewInput,
        ReviewReply,
        SynthesisInput,
        SynthesisReply,
    )
    from activities.contracts.planning_contracts import PlanInput, PlanReply
    from activities.contracts.turn_contracts import ToolInput, ToolReply, TurnInput, TurnReply
    from activities.judging import JudgingActivities
    from activities.planning import PlanningActivities
    from activities.synthesis import SynthesisActivities
    from supervision import limits
    from supervision.agent.turn_rules import attempt_time
    from supervision.contract.result import Problem
    from supervision.contract.usage import Usage
    from supervision.errors import ErrorKind, call_kind
    from supervision.queues import fairness_key
    from supervision.text import label
    from workflows.background import let_ready_tasks_finish
    from workflows.failures import CallCancelled, CallFailed, Paid, cancelled, details_of, problem_of


T = TypeVar("T")
P = TypeVar("P", bound=Paid)

# Errors that say of themselves that they are lasting are not listed. These are raised where they cannot: by the SDK
# (an input that does not fit the activity has no type) and by servers, for what no other attempt changes.
LASTING = ["", "ValidationError", "PayloadsTooLarge", ErrorKind.PAYLOAD_TOO_LARGE]

_MODEL_RETRY = RetryPolicy(
    initial_interval=limits.MODEL_RETRY_INITIAL,
    backoff_coefficient=limits.MODEL_RETRY_FACTOR,
    maximum_interval=limits.MODEL_RETRY_MAX,
    non_retryable_error_types=LASTING,
)
_TOOL_RETRY = RetryPolicy(initial_interval=limits.TOOL_RETRY_INITIAL, maximum_interval=limits.STORE_RETRY_MAX)


# --- Model calls of the supervisor ----------------------------------------------------------------


async def plan(payload: PlanInput, expires_at: datetime, queue: str) -> PlanReply:
    """Returns a plan, or why there is none, by one planning call."""
    summary = "the goal" if payload.revision == 1 else f"revision {payload.revision}"
    if payload.attempt > 1:
        summary += f", try {payload.attempt}"
    options = _model_options(expires_at, summary, limits.PLAN_MAX_TOKENS, queue)
    return await _model(workflow.start_activity_method(PlanningActivities.plan, payload, **options))


async def refine(payload: RefineInput, expires_at: datetime, queue: str) -> RefineReply:
    """Returns a better description of a subtask whose attempt failed."""
    options = _model_options(expires_at, f"{payload.subtask_id} after a failure", limits.REFINE_MAX_TOKENS, queue)
    return await _model(workflow.start_activity_method(JudgingActivities.refine, payload, **options))


async def review(payload: ReviewInput, expires_at: datetime, queue: str) -> ReviewReply:
    """Returns the verdicts on the findings, held against the goal."""
    options = _model_options(expires_at, f"round {payload.round}", limits.REVIEW_MAX_TOKENS, queue)
    return await _model(workflow.start_activity_method(JudgingActivities.review, payload, **options))


async def judge(payload: JudgeInput, expires_at: datetime, queue: str) -> JudgeReply:
    """Returns a choice between candidates, or the resolution of a conflict."""
    options = _model_options(
        expires_at, f"{payload.question} of {len(payload.findings)} findings", limits.JUDGE_MAX_TOKENS, queue
    )
    return await _model(workflow.start_activity_method(JudgingActivities.judge, payload, **options))


async def synthesize(payload: SynthesisInput, expires_at: datetime, queue: str) -> SynthesisReply:
    """Returns the answer from the findings, a draft of it, or a digest of some."""
    product = {"final": "the answer", "draft": "a draft", "digest": "a digest"}[payload.mode]
    options = _model_options(expires_at, f"{product} from {len(payload.findings)} findings", payload.max_tokens, queue)
    return await _model(workflow.start_activity_method(SynthesisActivities.synthesize, payload, **options))


# --- Calls of a worker agent ----------------------------------------------------------------------


async def call_model(payload: TurnInput, turn: int, expires_at: datetime, queue: str) -> TurnReply:
    """Returns the reply to one model call of a worker agent."""
    options = _model_options(expires_at, f"{payload.role}, turn {turn}", payload.max_tokens, queue)
    return await _model(workflow.start_activity_method(AgentTurnActivities.call_model, payload, **options))


async def run_tool(payload: ToolInput, queue: str) -> ToolReply:
    """Returns the output of one tool call.

    It is tried until there is a Worker with the store and the team of the run; how often the tool itself may begin is
    the activity's to count.
    """
    summary = label(f"{payload.call.name}: {payload.call.preview}", limits.LINE_BYTES)
    return await reply_of(
        workflow.execute_activity_method(
            ToolActivities.run_tool,
            payload,
            task_queue=queue,
            start_to_close_timeout=limits.TOOL_TIMEOUT + limits.TOOL_MARGIN,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            retry_policy=_TOOL_RETRY,
            summary=summary,
        )
    )


# --- What all of them share -----------------------------------------------------------------------


class _ModelOptions(TypedDict):
    task_queue: str
    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    summary: str
    priority: Priority
    cancellation_type: workflow.ActivityCancellationType


def _model_options(expires_at: datetime, summary: str, max_tokens: int, queue: str) -> _ModelOptions:
    return {
        "task_queue": queue,
        "start_to_close_timeout": attempt_time(max_tokens),
        # Never nothing: a late call fails by its timeout, not by a bad command.
        "schedule_to_close_timeout": max(expires_at - workflow.now(), limits.LEAST_CALL_TIME),
        "heartbeat_timeout": limits.HEARTBEAT_TIMEOUT,
        "retry_policy": _MODEL_RETRY,
        "summary": summary,
        "priority": _priority(),
        # Nobody waits for it: but the reply to a call that was answered meanwhile is not dropped.
        "cancellation_type": workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    }


def _priority() -> Priority:
    """Behind a rate limit runs take turns, whatever their size; nested supervisors share their root's turn."""
    info = workflow.info()
    return Priority(fairness_key=fairness_key(info.root.workflow_id if info.root else info.workflow_id))


async def reply_of(call: Awaitable[T]) -> T:
    """Awaits an activity. A cancelled one ends like any other cancelled await, so that callers need one clause."""
    try:
        return await call
    except FailureError as error:
        if cancelled(error):
            raise asyncio.CancelledError from error
        raise CallFailed(problem_of(error)) from error


async def _model(call: workflow.ActivityHandle[P]) -> P:
    """Awaits a model call; its problem is of a kind that the work which needs the call can end with.

    Raises CallCancelled at once when it is cancelled; a reply that comes all the same is paid.
    """
    try:
        # Shielded: the SDK drops the result of a call that is cancelled in the workflow task that brings it.
        return await reply_of(asyncio.shield(call))
    except asyncio.CancelledError:
        await let_ready_tasks_finish()
        if not call.done():
            call.cancel()
        raise CallCancelled(call) from None
    except CallFailed as failed:
        problem = failed.problem
        if problem.type is ErrorKind.TIMEOUT:
            message = f"the model gave no answer in the time that was left ({problem.message})"
        elif call_kind(problem.type) is not problem.type and problem.type is not ErrorKind.UNEXPECTED:
            message = f"{problem.type}: {problem.message}"
        else:
            message = problem.message
        details = _details(failed.__cause__)
        raise CallFailed(
            Problem(type=call_kind(problem.type), message=message), _breaker_seconds(details), _spent(details)
        ) from failed


def _details(error: BaseException | None) -> dict[str, JsonValue]:
    details = details_of(error) if isinstance(error, FailureError) else None
    return details if isinstance(details, dict) else {}


def _breaker_seconds(details: dict[str, JsonValue]) -> float:
    """Returns how long a provider's breaker stays open."""
    remaining = details.get("remaining")
    return float(remaining) if isinstance(remaining, (int, float)) else 0.0


def _spent(details: dict[str, JsonValue]) -> Usage:
    """Returns what the attempts at a call consumed that brought no answer."""
    try:
        return Usage.model_validate(details.get("spent") or {})
    except ValueError:
        return Usage()
