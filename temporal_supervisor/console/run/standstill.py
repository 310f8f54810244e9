"""The causes of a run's standstill, since when, and the remedies.

Most are known to the server, so no Worker is needed.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import JsonValue
from temporalio.api.enums.v1 import PendingActivityState, PendingWorkflowTaskState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription

from temporal_supervisor.console.base.command import UNREACHABLE, CommandFailed, hint
from temporal_supervisor.console.base.terminal import safe_line
from temporal_supervisor.console.run.at_work import is_at_work
from temporal_supervisor.console.run.found_runs import WAITING, last_beat, short_id, stuck_sentence
from temporal_supervisor.console.run.pollers import Polled, read_pollers, worker_of, workers_line
from temporal_supervisor.messages import RPC_TIMEOUT, NoAnswer
from temporal_supervisor.outcomes import is_open
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.payloads import readable
from temporal_supervisor.starting import RUN_TYPE
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.queues import WORKFLOW_QUEUE
from temporal_supervisor.supervision.contract.status import Status, Wait
from temporal_supervisor.supervision.run.attempt_rules import subtask_path
from temporal_supervisor.supervision.run.waits import AWAITED

WaitsFor = Literal["provider", "worker", "store", "server", "person", "code", "tool"]

_WORKFLOWS = 20  # of one run that are looked at for what it waits for: one question to the server each
_SUBJECTS = 4  # subtasks named on one line
_QUEUED_LONG = timedelta(seconds=2)  # a free Worker takes a task within milliseconds
_ASKED = {True: 80, False: limits.PARAGRAPH_BYTES}  # of what a decision is about: commands behind it show the rest
_STORE_HELPS = "make the artifact store answer, or check SUPERVISOR_ARTIFACTS_URL of the Workers; no work is lost"
_PROVIDER_HELPS = "it continues when the provider answers"
_TAKEN_UP = "it serves the run's queue; if this lasts, that Worker's log says why"
_TEAM_HELPS = "set SUPERVISOR_TEAMS_DIR of that Worker, or end it: another one may have the team"
_BY_KIND: dict[str, tuple[WaitsFor, str, str]] = {
    ErrorKind.ARTIFACT_UNAVAILABLE: ("store", "the artifact store", _STORE_HELPS),
    ErrorKind.ARTIFACT_MISSING: ("store", "the artifact store", _STORE_HELPS),
    ErrorKind.TEAM_UNAVAILABLE: ("worker", "a Worker with the run's team", _TEAM_HELPS),
    ErrorKind.SERVER_UNAVAILABLE: ("server", "the Temporal server", "it continues when the server answers"),
}
"""Whom a call waits for that failed with an error of some kind, and what helps; for other kinds it is the provider."""


@dataclass(frozen=True)
class Standstill:
    """A cause that keeps parts of a run waiting: `subjects` are subtasks or a step."""

    waits_for: WaitsFor
    subjects: tuple[str, ...]
    text: str
    helps: str
    since: str | None = None

    @property
    def cause(self) -> str:
        """The subjects, the awaited thing, and the time since."""
        first = ", ".join(self.subjects[:_SUBJECTS])
        more = len(self.subjects) - _SUBJECTS
        who = f"{first} and {more} more" if more > 0 else first
        since = f", since {_clock_time(self.since)}" if self.since else ""
        verb = "waits" if len(self.subjects) == 1 else "wait"
        return safe_line(f"{who} {verb} for {self.text}{since}", limits.PARAGRAPH_BYTES)

    @property
    def line(self) -> str:
        """The cause and its remedy on one line."""
        return f"{self.cause}: {self.helps}"


async def observed_standstills(
    run: Run,
    described: WorkflowExecutionDescription,
    *,
    answered: bool = True,
) -> list[Standstill]:
    """Returns the causes of an open run's standstill that the server knows.

    `answered` is False if no Worker answered a query. Raises RPCError.
    """
    if not is_open(described):
        return []
    causes = []
    if not stuck_sentence(described) and not (answered and _is_served(described)):
        causes.append(await _no_worker(run, described))
    for workflow in await _open_workflows(run, described):
        if why := stuck_sentence(workflow):
            who = (subtask_path(workflow.id, run.id) or "the run",)
            repair = hint("repair", short_id(run.id))
            helps = f"{repair} resets it if its history does not replay; else the Worker's log says why"
            causes.append(Standstill("code", who, f"fixed code: {why}", helps))
        for activity in workflow.raw_description.pending_activities:
            if cause := await _of_activity(run, workflow.id, activity):
                causes.append(cause)
    return grouped(causes)


async def causes_of(
    run: Run, described: WorkflowExecutionDescription, status: Status | None = None
) -> list[Standstill]:
    """Returns the causes of an open run's standstill.

    Without its `status`, a run that waits is queried.
    """
    causes = await observed_standstills(run, described)
    waits = described.typed_search_attributes.get(WAITING)
    if status is None and waits:
        try:
            status = await run.whole_status()
        except NoAnswer:  # then the server's knowledge says whom it waits for
            causes = await observed_standstills(run, described, answered=False)
    return grouped([*(waits_of_status(status, run.id) if status else []), *causes])


def waits_of_status(status: Status, run_id: str) -> list[Standstill]:
    """Returns the waits in a status: for people, and long ones for providers and roles."""
    causes = []
    for wait in status.waiting:
        if wait.for_person:
            asked = safe_line(wait.prompt_preview, _ASKED[wait.for_decision])
            text, helps = f"{AWAITED[wait.kind]} ({asked})", _first_way(run_id, wait)
            causes.append(Standstill("person", (wait.subject,), text, helps, wait.since))
        elif wait.kind == "store":
            text = f"{AWAITED[wait.kind]}: {safe_line(wait.prompt_preview, limits.PARAGRAPH_BYTES)}"
            causes.append(Standstill("store", ("the run",), text, _STORE_HELPS, wait.since))
        else:
            why = wait.prompt_preview.partition(": the provider of ")[0]  # the rest says when in its own way
            text = f"{AWAITED[wait.kind]}: {safe_line(why, limits.LINE_BYTES)}, {_next_try(wait.expires_at)}"
            causes.append(Standstill("provider", (wait.subject,), text, _PROVIDER_HELPS, wait.since))
    if status.flags.paused:
        causes.append(Standstill("person", ("the run",), "resume (it is paused)", hint("resume", short_id(run_id))))
    for card in status.breakers:
        if isinstance(card, dict) and "provider" not in card and card.get("state") != "closed":
            failed = f"open after {card['failures']} failed attempts in a row"
            text = f"its breaker, {failed}, {_next_try(card['retry_at'])}"
            helps = f"subtasks of role {card['role']} wait, or go to its fallback"
            causes.append(Standstill("tool", (f"role {card['role']}",), text, helps))
    return causes


def ways_to_decide(run_id: str, wait: Wait) -> dict[str, str]:
    """Returns the commands that end a wait for a person, by choice."""
    named = (short_id(run_id), wait.id)
    approve, deny = hint("approve", *named), hint("deny", *named, "--why", "TEXT")
    match wait.kind:
        case "resume":
            return {"resume": hint("resume", short_id(run_id))}
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
    """Returns the command that ends a wait.

    For an approval, the command that shows the content comes first.
    """
    first, *others = ways_to_decide(run_id, wait).values()
    return f"{hint('show', short_id(run_id), wait.id)}, then {first}" if others else first


async def explain_silence(client: Client, error: NoAnswer) -> CommandFailed:
    """Returns the error for a silent run, with the cause that the server reports."""
    run = Run(client, error.run_id)
    causes = await observed_standstills(run, await run.describe(), answered=False)
    return CommandFailed(UNREACHABLE, f"run '{run.id}' does not answer: {causes[0].line if causes else error}")


def _is_served(described: WorkflowExecutionDescription) -> bool:
    pending = described.raw_description.pending_workflow_task
    if pending.state != PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED:
        return True
    return datetime.now(UTC) - _to_datetime(pending.scheduled_time) <= _QUEUED_LONG


async def _no_worker(run: Run, described: WorkflowExecutionDescription) -> Standstill:
    pending = described.raw_description.pending_workflow_task
    queued = pending.original_scheduled_time
    since = _to_datetime(queued).isoformat() if queued.seconds else None
    if described.task_queue != WORKFLOW_QUEUE:
        text = f"a Worker of queue '{described.task_queue}', which is not ours"
        helps = f"start the run on queue '{WORKFLOW_QUEUE}' instead"
        return Standstill("worker", ("the run",), text, helps, since)
    info = described.raw_description.workflow_execution_info
    build = info.versioning_info.deployment_version.build_id
    seen = await read_pollers(run.client, WORKFLOW_QUEUE)
    # Without a task in the queue a Worker was asked in vain, just now.
    asked = _to_datetime(pending.scheduled_time) if queued.seconds else datetime.now(UTC) - RPC_TIMEOUT
    return missing_worker(seen, build, asked, since)


def missing_worker(seen: Polled, build: str, asked: datetime, since: str | None) -> Standstill:
    """Returns the wait for a Worker, optionally of a build.

    If a Worker has polled since the run `asked` for one, none needs to be started.
    """
    if not build and (why := seen.none_current):
        return Standstill("worker", ("the run",), f"a current build ({why})", seen.set_current, since)
    if at_work := seen.polled_since(asked, build):
        text = f"a Worker to take it up: {workers_line(at_work)}"
        return Standstill("worker", ("the run",), text, _TAKEN_UP, since)
    which = f" (the last one was {workers_line(seen.workers)})" if seen.workers else ""
    if build:
        which = f" of build {build}"
    helps = f"start one with {hint('worker', SUPERVISOR_BUILD_ID=build)}; the run is safe and continues then"
    return Standstill("worker", ("the run",), f"a Worker{which}", helps, since)


async def _open_workflows(run: Run, described: WorkflowExecutionDescription) -> list[WorkflowExecutionDescription]:
    """Returns the run with a limited number of its open worker agents and nested runs."""
    seen = [described]
    for each in seen:  # nested supervisors join while it goes
        children = [child.workflow_id for child in each.raw_description.pending_children]
        asked = map(run.describe, children[: _WORKFLOWS - len(seen)] if each.workflow_type == RUN_TYPE else [])
        found = await asyncio.gather(*asked, return_exceptions=True)  # one may just have ended
        seen += [child for child in found if isinstance(child, WorkflowExecutionDescription)]
    return seen


async def _of_activity(run: Run, workflow_id: str, activity: PendingActivityInfo) -> Standstill | None:
    who = (subtask_path(workflow_id, run.id) or activity.activity_type.name,)
    queue = activity.activity_options.task_queue.name
    due = _to_datetime(activity.next_attempt_schedule_time)
    queued = max(_to_datetime(activity.scheduled_time), due)
    kind, words = worker_of(queue)
    if held := (await last_beat(run, activity)).get("held"):
        return Standstill("store", who, f"the artifact store, to keep a received answer: {held}", _STORE_HELPS)
    is_queued = activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    is_late = is_queued and datetime.now(UTC) - queued > _QUEUED_LONG
    if is_late and not (await read_pollers(run.client, queue)).served:
        helps = f"start one with {hint('worker', *words)}"
        return Standstill("worker", who, f"{kind}: there is none", helps, queued.isoformat())
    # An attempt that has said something of itself is at work, whatever became of those before it.
    if activity.attempt < 2 or not activity.HasField("last_failure") or is_at_work(activity):
        return None
    failure = await readable(activity.last_failure, run.client.data_converter)
    wait = (due - datetime.now(UTC)).total_seconds()
    # under way: its number says so; else the next attempt has its own
    tried = f"attempt {activity.attempt}" + (f" in {wait:.0f} s" if wait > 0 else " under way")
    if failure.HasField("timeout_failure_info"):
        another = (await read_pollers(run.client, queue)).served
        start = f"start one with {hint('worker', *words)}"
        helps = "another Worker takes it up" if another else f"no other one serves its queue: {start}"
        return Standstill("worker", who, f"a Worker that was lost, {tried}", helps)
    other: tuple[WaitsFor, str, str] = ("provider", "the model provider", _PROVIDER_HELPS)
    if activity.activity_type.name == "run_tool":
        other = ("tool", "a tool", "it is tried again by itself")
    waits_for, whom, helps = _BY_KIND.get(failure.application_failure_info.type, other)
    message = safe_line(failure.message, limits.LINE_BYTES)
    return Standstill(waits_for, who, f"{whom}: {message}, {tried}", helps)


def grouped(causes: Iterable[Standstill]) -> list[Standstill]:
    """Returns each cause once, with all of its subjects, on one line."""
    groups: dict[tuple[str, str], Standstill] = {}
    for item in causes:
        key = (item.waits_for, item.helps)
        first = groups.get(key)
        subjects = tuple(dict.fromkeys([*(first.subjects if first else ()), *item.subjects]))
        earliest = min(filter(None, [item.since, first.since if first else None]), default=None)
        groups[key] = replace(first or item, subjects=subjects, since=earliest)
    return list(groups.values())


def _to_datetime(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


def _next_try(at: JsonValue) -> str:
    return f"next try at {_clock_time(str(at))}" if at else "it is being tried"


def _clock_time(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
