"""What a client program does: connects, starts runs, follows them, and decides about what waits for people."""

import asyncio
import atexit
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal, TypeVar

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributeKey, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, CancelledError, FailureError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.runtime.connection import connect as _connect
from temporal_supervisor.runtime.search_attributes import usable
from temporal_supervisor.runtime.settings import load_settings
from temporal_supervisor.runtime.telemetry import run_started
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import WORKFLOW_QUEUE
from temporal_supervisor.supervision.base.text import label, slug
from temporal_supervisor.supervision.contract import (
    Plan,
    RunRequest,
    RunResult,
    Status,
    TraceEvent,
    TracePage,
    UpdateReply,
    Wait,
)
from temporal_supervisor.supervision.contract.base import Undecodable
from temporal_supervisor.supervision.contract.status import Asked
from temporal_supervisor.supervision.contract.team import Team
from temporal_supervisor.supervision.contract.updates import (
    UPDATES_USED_UP,
    Decide,
    DecidePlan,
    DecideToolCall,
    DecisionReply,
    Pause,
    Reply,
    Resume,
    Steer,
    Update,
    read_update,
)
from temporal_supervisor.supervision.run.attempt_rules import is_child_id, supervisor_of
from temporal_supervisor.supervision.run.waits import AWAITED

_RUN_TYPE = "SupervisorWorkflow"
NO_WORKER = "no worker answers; the run is safe, and an open one continues when one is back"
_POLL = timedelta(seconds=1)
# Threads of the SDK let go of finished calls; in the interpreter's tear-down they aborted 14 of 90 processes.
_let_go = partial(time.sleep, 0.05)


class RunFailed(Exception):
    """A run that ended without a usable answer: `type` is the error's, `result` the part that was done, if any."""

    def __init__(self, type_: str, message: str, result: RunResult | None = None) -> None:
        super().__init__(f"{type_}: {message}")
        self.type = type_
        self.result = result


async def connect(address: str | None = None, namespace: str | None = None) -> Client:
    """Returns a client, from Temporal's own configuration unless an argument says otherwise.

    That is `TEMPORAL_*`, then profiles, then a server that `temporal-supervisor serve` started on this machine. Any
    other client does as well if its data converter is the pydantic one. With SUPERVISOR_KEYS_FILE it encrypts. Raises
    temporal_supervisor.runtime.connection.ConnectionFailed.
    """
    atexit.unregister(_let_go)
    atexit.register(_let_go)
    return await _connect(address=address, namespace=namespace, keys=load_settings().keys)


def new_run_id(client: Client, goal: str) -> str:
    """Returns an id that is not in use, with words of the goal unless the client encrypts: ids are readable."""
    words = "" if client.data_converter.payload_codec else f"{slug(goal)}-"
    return f"supervise-{words}{secrets.token_hex(3)}"


async def start(client: Client, request: RunRequest | Mapping[str, object], run_id: str | None = None) -> str:
    """Starts a run and returns its id. Raises temporalio's WorkflowAlreadyStartedError if there is a run of that id.

    A request may be its fields; one that is wrong raises ValueError.
    """
    request = RunRequest.model_validate(request)
    team = f"Team **{request.team_name}**" if request.team else "The Workers' usual team"
    team += " (inline)" if isinstance(request.team, Team) else ""
    began_at = time.time_ns()
    handle = await client.start_workflow(
        _RUN_TYPE,
        request,
        id=run_id or new_run_id(client, request.goal),
        task_queue=WORKFLOW_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        static_summary=label(request.goal, 200),
        static_details=f"{label(request.goal, limits.SUMMARY_BYTES)}\n\n{team}, strategy {request.strategy}",
        result_type=RunResult,
    )
    run_started(handle.id, handle.first_execution_run_id or "", began_at)
    return handle.id


async def wait(client: Client, run_id: str) -> RunResult:
    """Returns the result of a run once it has ended. Raises RunFailed if it failed or was cancelled."""
    handle = client.get_workflow_handle(run_id, result_type=RunResult)
    try:
        result: RunResult = await handle.result()
    except WorkflowFailureError as error:
        cause = error.cause
        if isinstance(cause, ApplicationError):
            kept = cause.details[0] if cause.details else None
            if isinstance(kept, Undecodable):  # encrypted, as the message is
                raise RunFailed(cause.type or "Failed", kept.reason) from error
            done = RunResult.model_validate(kept) if kept is not None else None
            raise RunFailed(cause.type or "Failed", cause.message, done) from error
        if isinstance(cause, TerminatedError):
            status = (await handle.describe()).status
            if status != WorkflowExecutionStatus.TERMINATED:  # a reset took its place, as `repair` does it
                return await wait(client, run_id)
        kind = "Cancelled" if isinstance(cause, CancelledError) else type(cause).__name__
        partial = None
        with suppress(NoAnswer, UpdateRefused):  # no Worker answers
            partial = await query(client, run_id, "result", RunResult)
        raise RunFailed(kind, str(cause), partial) from error
    return result


async def run(client: Client, request: RunRequest | Mapping[str, object], run_id: str | None = None) -> RunResult:
    """Starts a run and returns its result. Raises RunFailed, and as `start`."""
    return await wait(client, await start(client, request, run_id))


async def follow(client: Client, run_id: str) -> AsyncIterator[Status | TraceEvent]:
    """Yields the events of a run as they happen, and its status after each group of them, until it has ended.

    Of a run that has much going on the oldest events may be left out: `temporal-supervisor trace` has them all. While
    no Worker or server answers it waits.
    """
    handle = client.get_workflow_handle(run_id)
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
        if described and described.status is not WorkflowExecutionStatus.RUNNING and described.history_length == known:
            return
        await asyncio.sleep(_POLL.total_seconds())


OWNER = SearchAttributeKey.for_keyword("SupervisorOwner")
_QUERY_WAIT = timedelta(seconds=3)  # a query waits for a Worker: with none it would hang for its default
_UPDATE_WAIT = timedelta(seconds=10)  # an update needs one workflow task; on a busy Worker some seconds
_ASKED_AT_ONCE = 16  # runs, for the inbox
# How the server refuses an update of a run that has too many under way, or has had all that it may have.
_NO_UPDATES = (RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.FAILED_PRECONDITION)
_PlanDecision = Literal["approve", "edit", "change", "reject"]
_ON_PLAN: dict[str, _PlanDecision] = {"approve": "approve", "deny": "reject", "reply": "change"}
_T = TypeVar("_T")


class UpdateRefused(Exception):
    """A run does not take an update, or has no such wait; the message says what is current."""


class NoAnswer(Exception):
    """No Worker answered a query or an update of a run; the message says why, as far as the server knows."""

    def __init__(self, run_id: str, message: str = NO_WORKER) -> None:
        super().__init__(message)
        self.run_id = run_id


@dataclass(frozen=True)
class Item:
    """Something that waits for a person: the run, its goal, and the wait."""

    run_id: str
    goal: str
    wait: Wait


@dataclass(frozen=True)
class Inbox:
    """What waits for people, the oldest first; `unanswered` are runs of which no Worker says what waits in them."""

    items: list[Item]
    unanswered: list[str]


async def inbox(client: Client, owner: str | None = None) -> Inbox:
    """Returns what waits for people in all open runs, on all levels; with `owner` in those of that owner only.

    Raises ValueError if the server can't tell owners: it lacks the search attribute.
    """
    have = await usable(client)
    if owner is not None and OWNER.name not in have:
        raise ValueError(f"this server knows no owners: search attribute {OWNER.name} is missing, start a Worker once")
    query = "WorkflowType = 'SupervisorWorkflow' AND ExecutionStatus = 'Running'"
    query += " AND SupervisorWaiting = 'person'" if "SupervisorWaiting" in have else ""
    roots = [
        run.id
        async for run in client.list_workflows(query)
        if not is_child_id(run.id, run.parent_id) and owner in (None, run.typed_search_attributes.get(OWNER))
    ]
    looks, unanswered = asyncio.Semaphore(_ASKED_AT_ONCE), []

    async def look(run_id: str) -> list[Item]:
        try:
            async with looks:
                return await waiting(client, run_id)
        except NoAnswer:
            unanswered.append(run_id)
        except UpdateRefused:  # it has just ended
            pass
        return []

    found = await asyncio.gather(*map(look, roots))
    return Inbox(sorted((item for items in found for item in items), key=lambda item: item.wait.since), unanswered)


async def waiting(client: Client, run_id: str) -> list[Item]:
    """Returns what waits for people in one run."""
    items: list[Item] = []
    cursor: int | None = 0
    while cursor is not None:
        page = await query(client, run_id, "status", Status, cursor)
        items += [Item(run_id, page.goal, wait) for wait in page.waiting if wait.for_person]
        cursor = page.next_cursor if page.waiting else None
    return items


async def asked(client: Client, run_id: str, wait_id: str) -> Asked:
    """Returns a wait with all of what is asked. Raises UpdateRefused if nothing of that id waits."""
    return await query(client, _place_of(run_id, wait_id), "waiting", Asked, wait_id)


async def decide(
    client: Client, item: Item, word: str, text: str | None = None, *, plan: Plan | None = None, by: str | None = None
) -> UpdateReply:
    """Decides about anything in the inbox: `approve`, `deny`, or `reply` with a text for the agent that asks.

    The decision holds for what the item shows. With a `plan`, that one is approved in place of the one that waits.
    Raises ValueError if the word does not fit.
    """
    kind, fields = _decision(item.wait, word, text, plan)
    return await send(client, item.wait.workflow_id, kind, **fields, by=by)


async def decide_all(
    client: Client, items: Sequence[Item], word: str, text: str | None = None, *, by: str | None = None
) -> list[DecisionReply]:
    """Decides alike about many things in the inbox, with one update for up to 100 of a run.

    Returns what became of each; of those of a run that takes none of them, all with its refusal. Raises ValueError if
    the word does not fit one of them, before anything is sent.
    """
    by_run: dict[str, list[dict[str, object]]] = {}
    for item in items:
        kind, fields = _decision(item.wait, word, text, None)
        given = {name: value for name, value in {**fields, "by": by}.items() if value is not None}
        by_run.setdefault(item.wait.workflow_id, []).append(read_update(kind, given).model_dump(exclude_none=True))
    replies: list[DecisionReply] = []
    for run_id, decisions in by_run.items():
        for start in range(0, len(decisions), limits.DECISIONS_AT_ONCE):
            page = decisions[start : start + limits.DECISIONS_AT_ONCE]
            try:
                answer = await send(client, run_id, Decide, decisions=page, by=by)
            except UpdateRefused as error:
                ids = [str(each.get("id") or f"plan.{each['revision']}") for each in page]
                replies += [DecisionReply(id=each, accepted=False, message=str(error)) for each in ids]
            else:
                replies += answer.results
    return replies


def _decision(
    wait: Wait, word: str, text: str | None, plan: Plan | None
) -> tuple[type[DecidePlan | Reply | DecideToolCall], dict[str, object]]:
    """Returns the update that decides about a wait, and its fields. Raises ValueError if the word does not fit."""
    match wait.kind, word:
        case "plan", ("approve" | "deny" | "reply") if plan is None or word == "approve":
            decision = "edit" if plan else _ON_PLAN[word]
            revision = int(wait.id.rpartition(".")[2])
            fields = {"revision": revision, "decision": decision, "plan": plan, "comment": text}
            return DecidePlan, {**fields, "sha256": wait.sha256}
        case "tool", ("approve" | "deny") if plan is None:
            return DecideToolCall, {"id": wait.id, "decision": word, "comment": text, "sha256": wait.sha256}
        case (("question" | "finding"), "reply"):
            return Reply, {"id": wait.id, "text": text or "", "sha256": wait.sha256}
    fits = {"plan": "approve, deny or reply", "tool": "approve or deny"}.get(wait.kind, "reply")
    raise ValueError(f"'{wait.id}' waits for {AWAITED[wait.kind]}: '{word}' does not fit, {fits} does")


def _place_of(run_id: str, wait_id: str) -> str:
    """Returns the id of the run in which a wait stands, be `run_id` that one or its root."""
    there = supervisor_of(run_id, wait_id)
    return run_id if run_id.endswith(there.removeprefix(run_id)) else there


async def decide_plan(
    client: Client,
    run_id: str,
    revision: int,
    decision: _PlanDecision,
    *,
    sha256: str,
    plan: Plan | None = None,
    comment: str | None = None,
    by: str | None = None,
) -> UpdateReply:
    """Decides about a plan, shown by a wait of that `sha256`; `edit` brings a `plan`, `change` a `comment`."""
    fields = {"revision": revision, "decision": decision, "sha256": sha256, "plan": plan}
    return await send(client, run_id, DecidePlan, **fields, comment=comment, by=by)


async def reply(
    client: Client, run_id: str, wait_id: str, text: str, *, sha256: str, by: str | None = None
) -> UpdateReply:
    """Replies to a question, or hands in the finding of a person's subtask, shown by a wait of that `sha256`."""
    return await send(client, _place_of(run_id, wait_id), Reply, id=wait_id, text=text, sha256=sha256, by=by)


async def decide_tool_call(
    client: Client,
    run_id: str,
    wait_id: str,
    decision: Literal["approve", "deny"],
    *,
    sha256: str,
    comment: str | None = None,
    by: str | None = None,
) -> UpdateReply:
    """Decides about a tool call, shown by a wait of that `sha256`; the `comment` goes to the model."""
    fields = {"id": wait_id, "decision": decision, "sha256": sha256}
    return await send(client, _place_of(run_id, wait_id), DecideToolCall, **fields, comment=comment, by=by)


async def pause(client: Client, run_id: str, *, now: bool = False, by: str | None = None) -> UpdateReply:
    """Begins no more work; worker agents stop after their turn, or `now`, which may pay for it again."""
    return await send(client, run_id, Pause, now=now, by=by)


async def resume(client: Client, run_id: str, *, by: str | None = None) -> UpdateReply:
    """Ends a pause, and waits for the provider's account."""
    return await send(client, run_id, Resume, by=by)


async def steer(client: Client, run_id: str, text: str, *, to: str = "*", by: str | None = None) -> UpdateReply:
    """Says a word to the worker agent of the subtask `to`, or to all and to later prompts of the run."""
    return await send(client, run_id, Steer, text=text, to=to, by=by)


async def send(client: Client, run_id: str, kind: type[Update], **fields: object) -> UpdateReply:
    """Sends an update with these fields; one that is sent twice with the same `request_id` counts once.

    A decision goes as the signal `decide` to a run that takes no more updates: then its reply says so.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    update = read_update(kind, {"request_id": secrets.token_hex(8), **given})
    try:
        async with asyncio.timeout(_UPDATE_WAIT.total_seconds()):
            handle = client.get_workflow_handle(run_id)
            answer: UpdateReply = await handle.execute_update(kind.name(), update, result_type=UpdateReply)
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
        if is_decision and error.status in _NO_UPDATES and "update" in error.message.lower():
            return await _signalled(client, run_id, update)
        raise _not_open(run_id, error) from error


async def _signalled(client: Client, run_id: str, update: Update) -> UpdateReply:
    """Sends a decision, or a list of them, as a signal. Its reply can only say that it was sent."""
    decisions = update.decisions if isinstance(update, Decide) else [update]
    body = Decide.model_validate({"decisions": decisions, "by": update.by, "request_id": update.request_id})
    try:
        await client.get_workflow_handle(run_id).signal("decide", body.model_dump(mode="json", exclude_none=True))
        phase = (await query(client, run_id, "status", Status)).phase
    except RPCError as error:
        raise _not_open(run_id, error) from error
    ids = [each.id if not isinstance(each, DecidePlan) else f"plan.{each.revision}" for each in body.decisions]
    words = "sent as a signal, as the run takes no more updates"
    results = [DecisionReply(id=each, accepted=True, message=words) for each in ids]
    return UpdateReply(accepted=True, phase=phase, message=words, results=results)


async def query(client: Client, run_id: str, name: str, kind: type[_T], *arguments: object) -> _T:
    """Returns the reply to a query. Raises UpdateRefused if there is none to it, NoAnswer without a Worker."""
    try:
        async with asyncio.timeout(_QUERY_WAIT.total_seconds()):
            handle = client.get_workflow_handle(run_id)
            found: _T = await handle.query(name, args=arguments, result_type=kind, rpc_timeout=_QUERY_WAIT)
            return found
    except WorkflowQueryFailedError as error:
        raise UpdateRefused(str(error)) from error
    except (TimeoutError, WorkflowQueryRejectedError) as error:
        raise NoAnswer(run_id, str(error) or NO_WORKER) from error
    except RPCError as error:
        raise _not_open(run_id, error) from error


def _not_open(run_id: str, error: RPCError) -> Exception:
    gone = error.status is RPCStatusCode.NOT_FOUND
    return UpdateRefused(f"there is no open run '{run_id}'") if gone else NoAnswer(run_id, error.message)
