"""The calls about a run and its children, free and repeatable: local activities where no signal can come meanwhile.

Those that end a run are not cancelled: see docs/decisions/0004.
"""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypedDict, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from activities.child_records import ChildActivities
    from activities.contracts.run_contracts import (
        AdoptInput,
        AdoptReply,
        ChildEnd,
        ChildQuestion,
        ChildRef,
        Consumed,
        PoolQuestion,
        Published,
        PublishInput,
        RunRef,
        RunSetup,
        SetupInput,
    )
    from activities.pools import PoolActivities
    from activities.publishing import PublishingActivities
    from activities.run_setup import RunSetupActivities
    from supervision import limits
    from supervision.contract.status import TraceEvent
    from supervision.queues import pool_queue
    from workflows.calls.activity_calls import LASTING, reply_of
    from workflows.failures import CallFailed

T = TypeVar("T")

_STORE_RETRY = RetryPolicy(
    initial_interval=limits.STORE_RETRY_INITIAL,
    maximum_interval=limits.STORE_RETRY_MAX,
    maximum_attempts=limits.STORE_ATTEMPTS,
    non_retryable_error_types=LASTING,
)


async def prepare_run(payload: SetupInput) -> RunSetup:
    """Fixes team, references and process facts for the run; local, so it costs no server round trip."""
    return await reply_of(
        workflow.execute_local_activity_method(
            RunSetupActivities.prepare_run, payload, **_options(limits.SETUP_TIMEOUT, "prepare the run")
        )
    )


async def adopt_finding(payload: AdoptInput) -> AdoptReply:
    """Returns a finding as the answer, word for word; local, as it only reads. It is not cancelled."""
    options = _options(limits.PUBLISH_TIMEOUT, "take the finding as the answer")
    return await _to_its_end(
        workflow.execute_local_activity_method(PublishingActivities.adopt_finding, payload, **options)
    )


async def publish_result(payload: PublishInput, trace: list[TraceEvent]) -> Published:
    """Stores the whole result and trace; local, so the result is not written to history twice. It is not cancelled."""
    options = _options(limits.PUBLISH_TIMEOUT, "store result and trace")
    return await _to_its_end(
        workflow.execute_local_activity_method(PublishingActivities.publish_result, args=[payload, trace], **options)
    )


async def pool_backlog(run: RunRef, pool: str) -> float:
    """Returns the seconds that work has waited for the Workers of a pool; 0 when that can't be known."""
    try:
        return await reply_of(
            workflow.execute_activity_method(
                PoolActivities.pool_backlog,
                PoolQuestion(run=run, queue=pool_queue(pool)),
                schedule_to_close_timeout=limits.CONNECT_TIMEOUT,
                retry_policy=RetryPolicy(maximum_attempts=1),
                summary=f"backlog of pool {pool}",
            )
        )
    except CallFailed:
        return 0.0


async def find_child(question: ChildQuestion) -> ChildRef | None:
    """Returns the child that an execution before a reset started under an id; None if it started none there."""
    return await reply_of(
        workflow.execute_activity_method(
            ChildActivities.find_child, question, **_options(limits.SETUP_TIMEOUT, f"find {question.workflow_id}")
        )
    )


async def await_child(child: ChildRef, label: str) -> ChildEnd:
    """Returns how a child of an execution before a reset ended, once it has."""
    return await reply_of(
        workflow.execute_activity_method(
            ChildActivities.await_child,
            child,
            start_to_close_timeout=limits.MAX_DEADLINE,
            heartbeat_timeout=limits.HEARTBEAT_TIMEOUT,
            summary=label,
        )
    )


async def child_consumed(child: ChildRef) -> Consumed:
    """Returns what a child consumed that ended without saying so."""
    return await reply_of(
        workflow.execute_activity_method(
            ChildActivities.child_consumed,
            child,
            schedule_to_close_timeout=limits.PUBLISH_TIMEOUT,
            summary=f"cost of {child.workflow_id}",
        )
    )


class _Options(TypedDict):
    start_to_close_timeout: timedelta
    retry_policy: RetryPolicy
    summary: str


def _options(timeout: timedelta, summary: str) -> _Options:
    """Returns how a call is made that needs the store, or the server, for a moment."""
    return {"start_to_close_timeout": timeout, "retry_policy": _STORE_RETRY, "summary": summary}


async def _to_its_end(call: Coroutine[Any, Any, T]) -> T:
    """Awaits a call that a cancellation comes too late for."""
    task = asyncio.create_task(reply_of(call))
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            workflow.logger.debug("the run ends already: it is not cancelled any more")
    return task.result()
