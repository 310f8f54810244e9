"""The calls about a run and its children; they cost nothing and may be repeated."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import (
        AdoptInput,
        AdoptReply,
        ChildRef,
        Consumed,
        ExpandInput,
        ExpandReply,
        Notice,
        PoolQuestion,
        Published,
        PublishInput,
        RunRef,
        RunSetup,
        SetupInput,
        TableInput,
        TableReply,
        WordsInput,
    )
    from activities.questions.items import Expansions
    from activities.run.notices import NoticeActivities
    from activities.run.run_activities import RunActivities
    from supervision.base import limits
    from supervision.base.queues import pool_queue
    from supervision.base.text import label
    from supervision.contract.finding import Finding
    from supervision.contract.status import TraceEvent
    from workflows.calls.activity_calls import LASTING, reply_of
    from workflows.calls.failures import CallFailed

T = TypeVar("T")

_STORE_RETRY = RetryPolicy(
    initial_interval=limits.STORE_RETRY_INITIAL,
    maximum_interval=limits.STORE_RETRY_MAX,
    maximum_attempts=limits.STORE_ATTEMPTS,
    non_retryable_error_types=LASTING,
)


async def prepare_run(payload: SetupInput) -> RunSetup:
    """Fixes team, references and process facts for the run."""
    timeout = limits.FILES_TIMEOUT if payload.request.attachments else limits.SETUP_TIMEOUT
    return await _with_store(RunActivities.prepare_run, timeout, "prepare the run", payload)


async def expand_plan(payload: ExpandInput) -> ExpandReply:
    """Reads the items of a template and makes the next revision of the plan."""
    summary = f"the items of {payload.template}"
    return await _with_store(Expansions.expand_plan, limits.FILES_TIMEOUT, summary, payload)


async def tabulate(payload: TableInput) -> TableReply:
    """Makes the tables of templates."""
    summary = f"tables of {len(payload.findings)} items"
    return await _with_store(Expansions.tabulate, limits.FILES_TIMEOUT, summary, payload)


async def adopt_finding(payload: AdoptInput) -> AdoptReply:
    """Returns a finding as the answer, word for word."""
    activity = RunActivities.adopt_finding
    return await _with_store(activity, limits.PUBLISH_TIMEOUT, "take the finding as the answer", payload)


async def keep_words(payload: WordsInput) -> Finding:
    """Returns what a person wrote, stored, as a finding."""
    return await _with_store(RunActivities.keep_words, limits.PUBLISH_TIMEOUT, "store a reply", payload)


async def publish_result(payload: PublishInput, trace: list[TraceEvent]) -> Published:
    """Stores the whole result and trace."""
    activity = RunActivities.publish_result
    return await _with_store(activity, limits.PUBLISH_TIMEOUT, "store result and trace", payload, trace)


async def _with_store(
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


async def pool_backlog(run: RunRef, pool: str) -> float:
    """Returns the seconds that work has waited for the Workers of a pool; 0 when that can't be known."""
    try:
        return await reply_of(
            workflow.execute_activity(
                RunActivities.pool_backlog,
                PoolQuestion(run=run, queue=pool_queue(pool)),
                schedule_to_close_timeout=limits.CONNECT_TIMEOUT,
                retry_policy=RetryPolicy(maximum_attempts=1),
                summary=f"backlog of pool {pool}",
            )
        )
    except CallFailed:
        return 0.0


async def end_earlier_child(child: ChildRef) -> bool:
    """Ends the child that an execution before a reset left under an id. Returns False if it is a stranger's."""
    return await _looked_up(RunActivities.end_earlier_child, child, f"end the earlier {child.workflow_id}")


async def child_consumed(child: ChildRef) -> Consumed:
    """Returns what a child has consumed, for one that ended without saying so."""
    return await _looked_up(RunActivities.child_consumed, child, f"cost of {child.workflow_id}")


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


async def _looked_up(activity: Callable[[Any, ChildRef], Coroutine[Any, Any, T]], child: ChildRef, summary: str) -> T:
    return await reply_of(
        workflow.execute_activity_method(
            activity,
            child,
            schedule_to_close_timeout=limits.PUBLISH_TIMEOUT,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            summary=summary,
        )
    )
