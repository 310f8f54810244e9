"""Messages to a run (queries, updates, decisions) and their errors."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract import (
    Plan,
    Status,
    TraceEvent,
    TracePage,
    UpdateReply,
    Wait,
)
from temporal_supervisor.supervision.contract.updates import (
    UPDATES_USED_UP,
    Decide,
    Decided,
    DecidePlan,
    DecideToolCall,
    DecisionReply,
    Reply,
    Update,
    read_update,
)
from temporal_supervisor.supervision.run.waits import AWAITED

NO_WORKER = "no worker answers; the run is safe, and an open one continues when one is back"
# A query waits for a Worker: with none it would hang for its default.
RPC_TIMEOUT = timedelta(seconds=3)
_POLL = timedelta(seconds=1)
# An update needs one workflow task; on a busy Worker some seconds.
_UPDATE_WAIT = timedelta(seconds=10)
# How the server refuses an update of a run that has too many under way, or has had the most it may.
_NO_UPDATES = (RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.FAILED_PRECONDITION)
PlanDecision = Literal["approve", "edit", "change", "reject"]
_ON_PLAN: dict[str, PlanDecision] = {"approve": "approve", "deny": "reject", "reply": "change"}
_T = TypeVar("_T")


class UpdateRefused(Exception):
    """A run rejected an update, or has no such wait; the message has the current state."""


class NoRun(UpdateRefused):
    """No run has that id; `is_other` is True if a workflow of another type has it."""

    def __init__(self, message: str, *, is_other: bool = False) -> None:
        super().__init__(message)
        self.is_other = is_other


class NoAnswer(Exception):
    """No Worker answered a query or update of a run; the message has the reason, if known."""

    def __init__(self, run_id: str, message: str = NO_WORKER) -> None:
        super().__init__(message)
        self.run_id = run_id


@dataclass(frozen=True)
class Item:
    """A wait for a person, with its run and the run's goal."""

    run_id: str
    goal: str
    wait: Wait


async def query(client: Client, run_id: str, name: str, kind: type[_T], *arguments: object) -> _T:
    """Returns the reply to a query.

    Raises NoAnswer without a Worker, UpdateRefused if the run has no such wait or reply, and NoRun
    if there is no such run.
    """
    try:
        async with asyncio.timeout(RPC_TIMEOUT.total_seconds()):
            handle = client.get_workflow_handle(run_id)
            found: _T = await handle.query(
                name,
                args=arguments,
                result_type=kind,
                rpc_timeout=RPC_TIMEOUT,
            )
            return found
    except WorkflowQueryFailedError as error:
        raise UpdateRefused(str(error)) from error
    except (TimeoutError, WorkflowQueryRejectedError) as error:
        raise NoAnswer(run_id, str(error) or NO_WORKER) from error
    except RPCError as error:
        raise _not_open(run_id, error) from error


async def news_of(handle: WorkflowHandle[Any, Any]) -> AsyncIterator[Status | TraceEvent]:
    """Yields the events of a run as they happen, and its status after each group of them."""
    cursor, known = 0, -1
    while True:
        described = None
        try:
            described = await handle.describe()
            if described.history_length != known:
                page = await handle.query("trace", cursor, result_type=TracePage)
                status = await handle.query("status", result_type=Status)
                for event in page.events:
                    yield event
                yield status
                cursor, known = page.next_cursor, described.history_length
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise
        is_read = described is not None and described.history_length == known
        is_running = described is None or described.status is WorkflowExecutionStatus.RUNNING
        if is_read and not is_running:
            return
        await asyncio.sleep(_POLL.total_seconds())


async def send(client: Client, run_id: str, kind: type[Update], **fields: object) -> UpdateReply:
    """Sends an update; updates with one `request_id` count once.

    If a run takes no more updates, a decision is sent as the signal `decide`, as its reply then
    states.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    update = read_update(kind, {"request_id": secrets.token_hex(8), **given})
    try:
        async with asyncio.timeout(_UPDATE_WAIT.total_seconds()):
            handle = client.get_workflow_handle(run_id)
            answer: UpdateReply = await handle.execute_update(
                kind.name(),
                update,
                result_type=UpdateReply,
            )
            return answer
    except WorkflowUpdateFailedError as error:
        if isinstance(error.cause, ApplicationError) and error.cause.type == UPDATES_USED_UP:
            return await _signalled(client, run_id, update)
        why = error.cause.message if isinstance(error.cause, FailureError) else str(error.cause)
        raise UpdateRefused(why) from error
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        raise NoAnswer(run_id) from error
    except RPCError as error:
        is_decision = isinstance(update, Decide | DecidePlan | Reply | DecideToolCall)
        is_full = error.status in _NO_UPDATES and "update" in error.message.lower()
        if is_decision and is_full:
            return await _signalled(client, run_id, update)
        raise _not_open(run_id, error) from error


async def send_many(
    client: Client,
    run_id: str,
    decisions: Sequence[dict[str, object]],
    by: str | None,
) -> list[DecisionReply]:
    """Sends decisions about waits of one run, 100 in an update, and returns their replies.

    If the run rejects an update, its refusal is the reply to all decisions in it.
    """
    replies: list[DecisionReply] = []
    for start in range(0, len(decisions), limits.DECISIONS_AT_ONCE):
        page = decisions[start : start + limits.DECISIONS_AT_ONCE]
        try:
            answer = await send(client, run_id, Decide, decisions=page, by=by)
            replies += answer.results
        except UpdateRefused as error:
            ids = [str(each.get("id") or f"plan.{each['revision']}") for each in page]
            replies += [DecisionReply(id=each, accepted=False, message=str(error)) for each in ids]
    return replies


def decision_about(
    wait: Wait,
    word: str,
    text: str | None,
    plan: Plan | None,
) -> tuple[type[DecidePlan | Reply | DecideToolCall], dict[str, object]]:
    """Returns the update that decides about a wait, and its fields.

    `word` is `approve`, `deny` or `reply`. Raises ValueError if it does not fit the wait.
    """
    match wait.kind, word:
        case "plan", ("approve" | "deny" | "reply") if plan is None or word == "approve":
            decision = "edit" if plan else _ON_PLAN[word]
            revision = int(wait.id.rpartition(".")[2])
            of_plan = {"revision": revision, "decision": decision, "plan": plan, "comment": text}
            return DecidePlan, {**of_plan, "sha256": wait.sha256}
        case "tool", ("approve" | "deny") if plan is None:
            of_call = {"id": wait.id, "decision": word, "comment": text}
            return DecideToolCall, {**of_call, "sha256": wait.sha256}
        case (("question" | "finding"), "reply"):
            return Reply, {"id": wait.id, "text": text or "", "sha256": wait.sha256}
    fits = {"plan": "approve, deny or reply", "tool": "approve or deny"}.get(wait.kind, "reply")
    what = AWAITED[wait.kind]
    raise ValueError(f"'{wait.id}' waits for {what}: '{word}' does not fit, {fits} does")


async def _signalled(client: Client, run_id: str, update: Update) -> UpdateReply:
    """Sends a decision, or a list of them, as a signal.

    The reply can only confirm that it was sent.
    """
    decisions = update.decisions if isinstance(update, Decide) else [update]
    body = Decide.model_validate(
        {"decisions": decisions, "by": update.by, "request_id": update.request_id},
    )
    try:
        handle = client.get_workflow_handle(run_id)
        await handle.signal("decide", body.model_dump(mode="json", exclude_none=True))
        phase = (await query(client, run_id, "status", Status)).phase
    except RPCError as error:
        raise _not_open(run_id, error) from error
    words = "sent as a signal, as the run takes no more updates"
    ids = [_wait_id(each) for each in body.decisions]
    results = [DecisionReply(id=each, accepted=True, message=words) for each in ids]
    return UpdateReply(accepted=True, phase=phase, message=words, results=results)


def _wait_id(decision: Decided) -> str:
    """Returns the id of the wait that is decided."""
    return f"plan.{decision.revision}" if isinstance(decision, DecidePlan) else decision.id


def _not_open(run_id: str, error: RPCError) -> Exception:
    if error.status is RPCStatusCode.NOT_FOUND:
        return NoRun(f"there is no open run '{run_id}'")
    return NoAnswer(run_id, error.message)
