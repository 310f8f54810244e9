"""Reports to the root of a run that its store is unavailable.

Temporal retries a call that can't use the store until it can, so that no work is lost. Only the
root can stop the run's clock and show the wait. A call that has failed for a while signals the
root, which has `await_store` watch that call in the server's own record; no store is needed for
this: see docs/decisions/0034.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.run_contracts import RunRef
from activities.contracts.store_contracts import StoreReport, StoreWatch
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import STORE_AWAY, ErrorKind
from temporal_supervisor.supervision.base.text import cut

STORE_AWAY_SIGNAL = "store_away"
_AWAIT_STORE = "await_store"
_RPC_TIMEOUT = timedelta(seconds=3)
# An attempt that began after such a failure is through if it has not failed again by then: a remote
# store that does not answer is given up after less.
_GIVEN_UP = timedelta(seconds=20)
_reporting = set[str]()
"""The runs to which this process reports now: of a hundred calls that fail at once, one does."""


async def report_away(run: RunRef | None, why: str) -> None:
    """Tells the root of the run that the current activity can't use the store.

    The signal is left out if the root is watching already. If the server does not answer, this only
    logs a warning: the next attempt reports again.
    """
    info = activity.info()
    workflow_id = info.workflow_id or ""
    if run is None or info.activity_type == _AWAIT_STORE or run.run_id in _reporting:
        return
    if workflow_id != run.run_id and not workflow_id.startswith(f"{run.run_id}/"):
        return  # a stranger's: any workflow may be started with any input
    report = StoreReport(
        workflow_id=workflow_id,
        execution_id=info.workflow_run_id or "",
        activity_id=info.activity_id,
        why=cut(why, limits.PARAGRAPH_BYTES),
    )
    root = activity.client().get_workflow_handle(run.run_id)
    _reporting.add(run.run_id)
    try:
        described = await root.describe(rpc_timeout=_RPC_TIMEOUT)
        pending = described.raw_description.pending_activities
        if not any(_is_watch(call) for call in pending):
            await root.signal(STORE_AWAY_SIGNAL, report, rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        activity.logger.warning("the run does not know yet that its store is away: %s", error)
    finally:
        _reporting.discard(run.run_id)


class StoreWaits:
    """The activity in which a root waits until its store is available again."""

    @activity.defn
    async def await_store(self, watch: StoreWatch) -> None:
        """Returns when the store holds up none of the calls that have reported.

        While a call is held up the attempt fails, and Temporal starts the next one a little later.
        """
        client = activity.client()
        for report in watch.reports[: limits.STORE_WATCHED]:
            if await _is_held_up(client, report):
                doublings = min(activity.info().attempt - 1, 10)  # far beyond the longest pause
                raise ApplicationError(
                    report.why,
                    type=ErrorKind.ARTIFACT_UNAVAILABLE,
                    next_retry_delay=min(
                        limits.STORE_RETRY_INITIAL * 2.0**doublings, limits.STORE_WATCH_MAX
                    ),
                    category=ApplicationErrorCategory.BENIGN,
                )


async def _is_held_up(client: Client, report: StoreReport) -> bool:
    """True if the activity that has reported still waits for the store.

    An activity that is gone may have run out of its own time, and its workflow made another one in
    its place. Which one that is cannot be told, so each activity of that workflow counts then.
    """
    handle = client.get_workflow_handle(report.workflow_id, run_id=report.execution_id)
    try:
        described = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    if described.status is not WorkflowExecutionStatus.RUNNING:
        return False
    calls = [call for call in described.raw_description.pending_activities if not _is_watch(call)]
    reported = [call for call in calls if call.activity_id == report.activity_id]

    # The one in its place reports after its second failure: the run's clock would go until then.
    for call in reported or calls:
        if _has_failed(call) or (await _details(client, call)).get("held"):
            return True
    return False


def _is_watch(pending: PendingActivityInfo) -> bool:
    """True for the activity that looks whether others still wait for the store."""
    return pending.activity_type.name == _AWAIT_STORE


def _has_failed(pending: PendingActivityInfo) -> bool:
    """True if the last attempt failed for the store, and the next one has not got far yet."""
    if pending.last_failure.application_failure_info.type not in STORE_AWAY:
        return False
    if pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
        return True
    began = pending.last_started_time.ToDatetime(UTC)
    is_new = datetime.now(UTC) - began < _GIVEN_UP
    return is_new and pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


async def _details(client: Client, pending: PendingActivityInfo) -> Mapping[str, Any]:
    """Returns the last heartbeat of a call; `held` is a paid answer that can't be stored."""
    values = await client.data_converter.decode(pending.heartbeat_details.payloads)
    return values[0] if values and isinstance(values[0], dict) else {}
