"""What a run stands still for, since when, and what helps: mostly as the server knows it, which needs no Worker."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import JsonValue
from temporalio.api.enums.v1 import PendingActivityState, PendingWorkflowTaskState
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription

from console.base.command import UNREACHABLE, CommandFailed, hint, worker_hint
from console.base.terminal import safe_line
from console.run.pollers import ACTIVITIES, SET_CURRENT, WORKFLOWS, limited, named, none_current, polled, pollers, shown
from console.run.run_handle import RUN_TYPE, WAITING, NoAnswer, RunHandle, is_open, short_id, stuck
from runtime.payloads import readable
from supervision.base import limits
from supervision.base.errors import ErrorKind
from supervision.base.queues import MODEL_QUEUE, OUTWARD_QUEUE, TOOLS_QUEUE, WORKFLOW_QUEUE
from supervision.contract.status import Status, Wait
from supervision.run.attempt_rules import subtask_path
from supervision.run.waits import AWAITED, breaker_note

WaitsFor = Literal["provider", "worker", "store", "server", "person", "code", "tool"]

_QUEUED, _STARTED = (
    PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED,
    PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
)
_WORKFLOWS = 20  # of one run that are looked at for what it waits for: one question to the server each
_SUBJECTS = 4  # subtasks named on one line
_HEARTBEAT_OVERDUE = 3 * limits.HEARTBEAT_EVERY  # a busy Worker may be late with one or two
_QUEUED_LONG = timedelta(seconds=2)  # a free Worker takes an activity within milliseconds
_ASKED = {True: 80, False: limits.PARAGRAPH_BYTES}  # of what a decision is about: commands behind it show the rest
_STORE_HELPS = "make the artifact store answer, or check SUPERVISOR_ARTIFACTS_URL of the Workers; no work is lost"

_TEAM_HELPS = "set SUPERVISOR_TEAMS_DIR of that Worker, or end it: another one may have the team"
_TURN_HELPS = "it continues by itself, as fast as the limit allows"
PROVIDER_HELPS = "it continues when the provider answers"
_BY_KIND: dict[str, tuple[WaitsFor, str, str]] = {
    ErrorKind.ARTIFACT_UNAVAILABLE: ("store", "the artifact store", _STORE_HELPS),
    ErrorKind.ARTIFACT_MISSING: ("store", "the artifact store", _STORE_HELPS),
    ErrorKind.TEAM_UNAVAILABLE: ("worker", "a Worker with the run's team", _TEAM_HELPS),
    ErrorKind.SERVER_UNAVAILABLE: ("server", "the Temporal server", "it continues when the server answers"),
    ErrorKind.RATE_LIMITED: ("provider", "the model provider", "it continues by itself, more slowly"),
}
"""Whom a call waits for that failed with an error of some kind, and what helps; for other kinds it is the provider."""


@dataclass(frozen=True)
class Standstill:
    """One thing that keeps parts of a run waiting: `subjects` are its subtasks, or the supervisor's own step."""

    waits_for: WaitsFor
    subjects: tuple[str, ...]
    text: str
    helps: str
    since: str | None = None

    @property
    def cause(self) -> str:
        """Who waits for whom, and since when."""
        first = ", ".join(self.subjects[:_SUBJECTS])
        more = len(self.subjects) - _SUBJECTS
        who = f"{first} and {more} more" if more > 0 else first
        since = f", since {datetime.fromisoformat(self.since).astimezone():%H:%M:%S}" if self.since else ""
        verb = "waits" if len(self.subjects) == 1 else "wait"
        return safe_line(f"{who} {verb} for {self.text}{since}", limits.PARAGRAPH_BYTES)

    @property
    def line(self) -> str:
        """The cause, and what helps."""
        return f"{self.cause}: {self.helps}"


async def observed(
    run: RunHandle, described: WorkflowExecutionDescription, answered: bool | None = None
) -> list[Standstill]:
    """Returns what an open run stands still for, as far as the server knows. Raises RPCError.

    `answered` says if a Worker answered for the run just now, None if none was asked.
    """
    if not is_open(described):
        return []
    causes = []
    if not stuck(described) and not (_is_served(described) if answered is None else answered):
        causes.append(await _no_worker(run, described))
    for workflow in await _open_workflows(run, described):
        if why := stuck(workflow):
            causes.append(await _of_code(run, workflow.id, why))
        for activity in workflow.raw_description.pending_activities:
            if cause := await _of_activity(run, workflow.id, activity):
                causes.append(cause)
    return grouped(causes)


async def causes_of(
    run: RunHandle, described: WorkflowExecutionDescription, status: Status | None = None
) -> list[Standstill]:
    """Returns what an open run stands still for; without its `status` that is asked of a run that says it waits."""
    causes = await observed(run, described, answered=True if status else None)
    waits = described.typed_search_attributes.get(WAITING)
    if status is None and waits:
        with contextlib.suppress(NoAnswer):  # then the server's knowledge says whom it waits for
            status = await run.status()
    return grouped([*(stated(status, run.id) if status else []), *causes])


def stated(status: Status, run_id: str) -> list[Standstill]:
    """Returns the waits that the run itself shows: for persons, and for providers and roles that failed for long."""
    causes = [
        Standstill(
            "person",
            (wait.subject,),
            f"{AWAITED[wait.kind]} ({safe_line(wait.prompt_preview, _ASKED[wait.for_decision])})",
            _first_way(run_id, wait),
            wait.since,
        )
        for wait in status.waiting
        if wait.for_person  # a provider's wait is its breaker's, below
    ]
    if status.flags.paused:
        causes.append(Standstill("person", ("the run",), "resume (it is paused)", hint("resume", run_id)))
    for card in status.breakers:
        if isinstance(card, dict) and card.get("state") != "closed":
            provider = "provider" in card
            subject = str(card["waiting"]) if provider else "the run"
            helps = unanswered() if provider else "its subtasks wait, or go to the role's fallback"
            text = _outage(card) if provider else breaker_note(card)
            causes.append(Standstill("provider" if provider else "tool", (subject,), text, helps))
    return causes


def ways(run_id: str, wait: Wait) -> dict[str, str]:
    """Returns the commands that end a wait for a person, by the choice."""
    named = (short_id(run_id), wait.id)
    approve, deny = hint("approve", *named), hint("deny", *named, "--why", "TEXT")
    match wait.kind:
        case "resume":
            return {"resume": hint("resume", run_id)}
        case "tool":
            return {"approve": approve, "deny": deny}
        case "plan":
            written = hint("plan", named[0], "--json").removesuffix("`") + " > plan.json`"
            edit = f"{written}, then {hint('approve', *named, '--plan', 'plan.json')}"
            change = hint("reply", *named, "what to change")
            table = {"approve": approve, "edit": edit, "change": change, "reject": deny}
            return {choice: command for choice, command in table.items() if choice in wait.choices}
    found = {"reply": hint("reply", *named, "TEXT")}
    if "retry" in wait.choices and wait.subtask_id:  # it failed for good
        found |= {word: hint(word, named[0], wait.subtask_id) for word in ("retry", "skip")}
    return found


def _first_way(run_id: str, wait: Wait) -> str:
    """Returns the command that ends a wait, behind the one that shows what is asked where that is to be approved."""
    first, *others = ways(run_id, wait).values()
    return f"{hint('show', short_id(run_id), wait.id)}, then {first}" if others else first


def _outage(card: Mapping[str, JsonValue]) -> str:
    """Returns what a wait for a provider's breaker is for, and until when."""
    at = card.get("retry_at")
    when = f"next try at {datetime.fromisoformat(str(at)).astimezone():%H:%M:%S}" if at else "it is being tried"
    why = card.get("why") or f"that of {card['provider']} is in an outage"
    cause = str(why).partition(": the provider of ")[0]  # the rest says the time of the next try in its own way
    return f"the model provider: {safe_line(cause, limits.LINE_BYTES)}, {when}"


def unanswered() -> str:
    """Returns what helps while a provider does not answer."""
    return f"{PROVIDER_HELPS}; try that from here: {hint('doctor')}"


async def silence(client: Client, error: NoAnswer) -> CommandFailed:
    """Returns why a run does not answer, as far as the server knows."""
    run = RunHandle(client, error.run_id)
    causes = await observed(run, await run.describe(), answered=False)
    return CommandFailed(UNREACHABLE, f"run '{run.id}' does not answer: {causes[0].line if causes else error}")


def _is_served(described: WorkflowExecutionDescription) -> bool:
    """True unless work for the workflow itself has been queued for long."""
    pending = described.raw_description.pending_workflow_task
    if pending.state != PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED:
        return True
    return datetime.now(UTC) - _time(pending.scheduled_time) <= _QUEUED_LONG


async def _no_worker(run: RunHandle, described: WorkflowExecutionDescription) -> Standstill:
    queued = described.raw_description.pending_workflow_task.original_scheduled_time
    since = _time(queued).isoformat() if queued.seconds else None
    if described.task_queue != WORKFLOW_QUEUE:
        text = f"a Worker of queue '{described.task_queue}', which is not ours"
        helps = f"start the run on queue '{WORKFLOW_QUEUE}' instead"
        return Standstill("worker", ("the run",), text, helps, since)
    if build := described.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id:
        start, which = worker_hint(build=build), f" of build {build}"
    else:
        seen = await polled(run.client, WORKFLOW_QUEUE, WORKFLOWS)
        if why := await none_current(run.client, seen):
            return Standstill("worker", ("the run",), f"a current build ({why})", SET_CURRENT, since)
        start, which = worker_hint(), f" (the last one was {shown(named(seen))})" if seen else ""
    helps = f"start one with {start}; the run is safe and continues then"
    return Standstill("worker", ("the run",), f"a Worker{which}", helps, since)


async def _of_code(run: RunHandle, workflow_id: str, why: str) -> Standstill:
    """Returns what a workflow needs whose code fails: a reset if its history does not replay, else other code."""
    who = (subtask_path(workflow_id, run.id) or "the run",)
    if await run.replay_failed(workflow_id):
        helps = f"{hint('repair', run.id)} resets it to the last task up to which it does"
        return Standstill("code", who, f"a repair: {why}, because its history does not replay", helps)
    helps = "the Worker's log says why; the run continues when Workers with fixed code are started"
    return Standstill("code", who, f"fixed workflow code: {why}", helps)


async def _open_workflows(
    run: RunHandle, described: WorkflowExecutionDescription
) -> list[WorkflowExecutionDescription]:
    """Returns the run, and as many of its open worker agents and nested supervisors as one looks at."""
    seen, level = [described], [described]
    while level:
        children = [child.workflow_id for one in level for child in one.raw_description.pending_children]
        room = _WORKFLOWS - len(seen)
        asked = await asyncio.gather(*(_described(run, child) for child in children[: max(0, room)]))
        answered = [child for child in asked if child is not None]
        seen += answered
        level = [child for child in answered if child.workflow_type == RUN_TYPE]
    return seen


async def _described(run: RunHandle, workflow_id: str) -> WorkflowExecutionDescription | None:
    try:
        return await run.describe(workflow_id)
    except CommandFailed:  # it has just ended, and was pruned
        return None


async def _of_activity(run: RunHandle, workflow_id: str, activity: PendingActivityInfo) -> Standstill | None:
    """Returns what an activity stands still for; None while it is worked on."""
    who = (subtask_path(workflow_id, run.id) or activity.activity_type.name,)
    now = datetime.now(UTC)
    patience = activity.activity_options.heartbeat_timeout.ToTimedelta()
    if activity.state == _STARTED and patience:
        heard = max(_time(activity.last_started_time), _time(activity.last_heartbeat_time))
        if now - heard > _HEARTBEAT_OVERDUE:
            text = f"Worker {activity.last_worker_identity}, which is silent"
            helps = f"another Worker takes over {patience.total_seconds():g} s after the last heartbeat"
            return Standstill("worker", who, text, helps, heard.isoformat())
    if held := (await run.beat(activity)).get("held"):
        return Standstill("store", who, f"the artifact store, to keep a received answer: {held}", _STORE_HELPS)
    queued = max(_time(activity.scheduled_time), _time(activity.next_attempt_schedule_time))
    cause = None
    if activity.state == _QUEUED and now - queued > _QUEUED_LONG:
        cause = await _of_queue(run, who, activity.activity_options.task_queue.name)
    if cause:
        return replace(cause, since=queued.isoformat())
    if activity.attempt > 1 and activity.HasField("last_failure"):
        since = await run.first_scheduled(workflow_id, activity.activity_id)
        failure = await readable(activity.last_failure, run.client.data_converter)
        return replace(_of_failure(who, activity, failure, now), since=since)
    return None


async def _of_queue(run: RunHandle, who: tuple[str, ...], queue: str) -> Standstill | None:
    """Returns that a queue has no Worker, or that its rate is limited; None if its Workers are merely busy."""
    if await pollers(run.client, queue, ACTIVITIES):
        why = await limited(run.client, queue)
        return Standstill("provider", who, f"its turn in queue {queue}: {why}", _TURN_HELPS) if why else None
    kind, words = worker_of(queue)
    return Standstill("worker", who, f"{kind}: there is none", f"start one with {worker_hint(*words)}")


def worker_of(queue: str) -> tuple[str, Sequence[str]]:
    """Returns the Worker that serves a queue, in words, and the options that start it."""
    if queue == MODEL_QUEUE:
        return "a Worker that makes model calls", ()
    if queue == TOOLS_QUEUE:
        return "a Worker that runs tools", ()
    if queue == OUTWARD_QUEUE:
        return "a Worker that runs outward tools", ("--roles", "outward")
    if queue.startswith(f"{WORKFLOW_QUEUE}."):
        pool = queue.removeprefix(f"{WORKFLOW_QUEUE}.")
        return f"a Worker of pool {pool}", ("--pool", pool)
    return f"a Worker of queue {queue}", ()


def _of_failure(who: tuple[str, ...], activity: PendingActivityInfo, failure: Failure, now: datetime) -> Standstill:
    """Returns what an activity that is tried again failed with."""
    kind = failure.application_failure_info.type
    message = safe_line(failure.message or "a lost Worker", limits.LINE_BYTES)
    wait = (_time(activity.next_attempt_schedule_time) - now).total_seconds()
    # under way: its number says so; else the next attempt has its own
    tried = f"attempt {activity.attempt}" + (f" in {wait:.0f} s" if wait > 0 else " under way")
    if failure.HasField("timeout_failure_info"):
        _, words = worker_of(activity.activity_options.task_queue.name)
        helps = f"another Worker takes it up; where there is none, start one with {worker_hint(*words)}"
        return Standstill("worker", who, f"a Worker that was lost, {tried}", helps)
    unlisted: tuple[WaitsFor, str, str] = ("provider", "the model provider", unanswered())
    waits_for, whom, helps = _BY_KIND.get(kind, unlisted)
    if waits_for == "provider" and activity.activity_type.name == "run_tool":
        waits_for, whom, helps = "tool", "a tool", "it is tried again by itself"
    return Standstill(waits_for, who, f"{whom}: {message}, {tried}", helps)


def grouped(causes: Iterable[Standstill]) -> list[Standstill]:
    """Returns each cause once, with all that it keeps waiting: ten subtasks behind one provider are one line."""
    groups: dict[tuple[str, str], Standstill] = {}
    for item in causes:
        key = (item.waits_for, item.helps)
        first = groups.get(key)
        subjects = tuple(dict.fromkeys([*(first.subjects if first else ()), *item.subjects]))
        earliest = min(filter(None, [item.since, first.since if first else None]), default=None)
        groups[key] = replace(first or item, subjects=subjects, since=earliest)
    return list(groups.values())


def _time(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)
