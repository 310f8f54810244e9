"""How workflows call activities: queue, timeouts, retries and the label that the Web UI shows, in one place.

Model calls get the whole time that the run has left, because a shorter limit would cut calls in flight and pay
for them again; one attempt is bounded by its own timeout, the heartbeat and the idle watchdog.
"""

from datetime import datetime, timedelta
from typing import TypedDict

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.agent_turn import AgentTurnActivities
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
    from activities.contracts.run_contracts import Published, PublishInput, RunSetup, SetupInput
    from activities.contracts.turn_contracts import ToolInput, ToolReply, TurnInput, TurnReply
    from activities.judging import JudgingActivities
    from activities.planning import PlanningActivities
    from activities.pools import PoolActivities
    from activities.publishing import PublishingActivities
    from activities.run_setup import RunSetupActivities
    from activities.synthesis import SynthesisActivities
    from activities.tool_calls import ToolActivities
    from supervision import limits
    from supervision.contract.status import TraceEvent
    from supervision.contract.team import ToolCard
    from supervision.queues import MODEL_QUEUE, fairness_key, pool_queue
    from supervision.text import one_line
    from workflows.failures import cancelled, wrapped

_MODEL_RETRY = RetryPolicy(
    initial_interval=limits.MODEL_RETRY_INITIAL,
    backoff_coefficient=limits.MODEL_RETRY_FACTOR,
    maximum_interval=limits.MODEL_RETRY_MAX,
)
_STORE_RETRY = RetryPolicy(
    initial_interval=limits.STORE_RETRY_INITIAL,
    maximum_interval=limits.STORE_RETRY_MAX,
    maximum_attempts=limits.STORE_ATTEMPTS,
)


def _left(expires_at: datetime) -> timedelta:
    """The time until `expires_at`, never nothing: a late call fails by its timeout, not by a bad command."""
    return max(expires_at - workflow.now(), limits.LEAST_CALL_TIME)


class _ModelCall(TypedDict):
    task_queue: str
    start_to_close_timeout: timedelta
    schedule_to_close_timeout: timedelta
    heartbeat_timeout: timedelta
    retry_policy: RetryPolicy
    summary: str
    priority: Priority


def _model_call(expires_at: datetime, summary: str, queue: str = MODEL_QUEUE) -> _ModelCall:
    return {
        "task_queue": queue,
        "start_to_close_timeout": limits.MODEL_CALL_TIMEOUT,
        "schedule_to_close_timeout": _left(expires_at),
        "heartbeat_timeout": limits.HEARTBEAT_TIMEOUT,
        "retry_policy": _MODEL_RETRY,
        "summary": summary,
        "priority": _priority(),
    }


def _priority() -> Priority:
    """Behind a rate limit runs take turns, whatever their size; nested supervisors share their root's turn."""
    info = workflow.info()
    return Priority(fairness_key=fairness_key(info.root.workflow_id if info.root else info.workflow_id))


async def prepare_run(input: SetupInput) -> RunSetup:
    """Fixes team, references and process facts for the run; local, so it costs no server round trip."""
    return await wrapped(
        workflow.execute_local_activity_method(
            RunSetupActivities.prepare_run,
            input,
            start_to_close_timeout=limits.SETUP_TIMEOUT,
            retry_policy=_STORE_RETRY,
            summary="prepare the run",
        )
    )


async def plan(input: PlanInput, expires_at: datetime) -> PlanReply:
    """One planning call."""
    summary = "the goal" if input.revision == 1 else f"revision {input.revision}"
    if input.attempt > 1:
        summary += f", try {input.attempt}"
    return await workflow.execute_activity_method(PlanningActivities.plan, input, **_model_call(expires_at, summary))


async def refine(input: RefineInput, expires_at: datetime) -> RefineReply:
    """A better description of a subtask whose attempt failed."""
    return await workflow.execute_activity_method(
        JudgingActivities.refine, input, **_model_call(expires_at, f"{input.subtask_id} after a failure")
    )


async def review(input: ReviewInput, expires_at: datetime) -> ReviewReply:
    """The findings held against the goal."""
    return await workflow.execute_activity_method(
        JudgingActivities.review, input, **_model_call(expires_at, f"round {input.round}")
    )


async def judge(input: JudgeInput, expires_at: datetime) -> JudgeReply:
    """A choice between candidates, or a word on a conflict."""
    return await workflow.execute_activity_method(
        JudgingActivities.judge,
        input,
        **_model_call(expires_at, f"{input.question} of {len(input.findings)} findings"),
    )


async def call_model(input: TurnInput, turn: int, expires_at: datetime, queue: str) -> TurnReply:
    """One model call of a worker agent."""
    return await workflow.execute_activity_method(
        AgentTurnActivities.call_model, input, **_model_call(expires_at, f"{input.role}, turn {turn}", queue)
    )


async def pool_backlog(pool: str) -> float:
    """Seconds that work has waited for the Workers of a pool; 0 when that can't be known."""
    try:
        return await wrapped(
            workflow.execute_local_activity_method(
                PoolActivities.pool_backlog,
                pool_queue(pool),
                start_to_close_timeout=limits.CONNECT_TIMEOUT,
                retry_policy=RetryPolicy(maximum_attempts=1),
                summary=f"backlog of pool {pool}",
            )
        )
    except ActivityError as error:
        if cancelled(error):
            raise
        return 0.0


async def run_tool(input: ToolInput, tool: ToolCard | None, queue: str) -> ToolReply:
    """One tool call: small pure tools inside the workflow task, the others as activities.

    A tool that may have effects gets one attempt: a lost outcome is for the model to look into.
    """
    summary = one_line(f"{input.call.name}: {input.call.preview}", limits.ARGUMENTS_PREVIEW_BYTES)
    retry = RetryPolicy(maximum_attempts=1 if tool and tool.effects == "write" else limits.TOOL_ATTEMPTS)
    if tool is None or tool.local:
        return await wrapped(
            workflow.execute_local_activity_method(
                ToolActivities.run_tool,
                input,
                start_to_close_timeout=limits.LOCAL_TOOL_TIMEOUT,
                retry_policy=retry,
                summary=summary,
            )
        )
    return await workflow.execute_activity_method(
        ToolActivities.run_tool,
        input,
        task_queue=queue,
        start_to_close_timeout=limits.TOOL_TIMEOUT + limits.TOOL_MARGIN,
        heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
        retry_policy=retry,
        summary=summary,
    )


async def synthesize(input: SynthesisInput, expires_at: datetime) -> SynthesisReply:
    """The answer from the findings, a draft of it, or a digest of some."""
    what = {"final": "the answer", "draft": "a draft", "digest": "a digest"}[input.mode]
    return await workflow.execute_activity_method(
        SynthesisActivities.synthesize, input, **_model_call(expires_at, f"{what} from {len(input.findings)} findings")
    )


async def publish_result(input: PublishInput, trace: list[TraceEvent]) -> Published:
    """Stores the whole result and trace; local, so the result is not written to history twice."""
    return await wrapped(
        workflow.execute_local_activity_method(
            PublishingActivities.publish_result,
            args=[input, trace],
            start_to_close_timeout=limits.PUBLISH_TIMEOUT,
            retry_policy=_STORE_RETRY,
            summary="store result and trace",
        )
    )
