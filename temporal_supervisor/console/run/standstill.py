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

_WORKFLOWS = 20  # of one run that are looked at: one question to the server each
_SUBJECTS = 4  # subtasks named on one line
_QUEUED_LONG = timedelta(seconds=2)  # a free Worker takes a task within milliseconds
_DECISION_CHARS = 80  # of what is to be decided about: the commands behind it show the rest
_STORE_HELPS = (
    "make the artifact store answer, or check SUPERVISOR_ARTIFACTS_URL of the Workers; "
    "no work is lost"
)
_PROVIDER_HELPS = "it continues when the provider answers"
_TAKEN_UP = "it serves the run's queue; if this lasts, that Worker's log says why"
_TEAM_HELPS = "set SUPERVISOR_TEAMS_DIR of that Worker, or end it: another one may have the team"
_BY_KIND: dict[str, tuple[WaitsFor, str, str]] = {
    ErrorKind.ARTIFACT_UNAVAILABLE: ("store", "the artifact store", _STORE_HELPS),
    ErrorKind.ARTIFACT_MISSING: ("store", "the artifact store", _STORE_HELPS),
    ErrorKind.TEAM_UNAVAILABLE: ("worker", "a Worker with the run's team", _TEAM_HELPS),
    ErrorKind.SERVER_UNAVAILABLE: (
        "server",
        "the Temporal server",
        "it continues when the server answers",
    ),
}
"""The thing that a failed call waits for, and the remedy, by the kind of the call's error.

Calls with other errors wait for the provider.
"""


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
        failing = stuck_sentence(workflow)
        if failing:
            who = (subtask_path(workflow.id, run.id) or "the run",)
            resets = f"{hint('repair', short_id(run.id))} resets it if its history does not replay"
            helps = f"{resets}; else the Worker's log says why"
            causes.append(Standstill("code", who, f"fixed code: {failing}", helps))
        for activity in workflow.raw_description.pending_activities:
            cause = await _of_activity(run, workflow.id, activity)
            if cause:
                causes.append(cause)
    return grouped(causes)


async def causes_of(
    run: Run,
    described: WorkflowExecutionDescription,
    status: Status | None = None,
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
    if status is not None:
        causes = [*waits_of_status(status, run.id), *causes]
    return grouped(causes)


def waits_of_status(status: Status, run_id: str) -> list[Standstill]:
    """Returns the waits in a status: for people, and long ones for providers and roles."""
    causes = [_of_wait(run_id, wait) for wait in status.waiting]
    if status.flags.paused:
        resume = hint("resume", short_id(run_id))
        causes.append(Standstill("person", ("the run",), "resume (it is paused)", resume))
    for card in status.breakers:
        if not isinstance(card, dict) or "provider" in card or card.get("state") == "closed":
            continue
        failed = f"open after {card['failures']} failed attempts in a row"
        text = f"its breaker, {failed}, {_next_try(card['retry_at'])}"
        helps = f"subtasks of role {card['role']} wait, or go to its fallback"
        causes.append(Standstill("tool", (f"role {card['role']}",), text, helps))
    return causes


def _of_wait(run_id: str, wait: Wait) -> Standstill:
    awaited = AWAITED[wait.kind]
    if wait.for_person:
        room = _DECISION_CHARS if wait.for_decision else limits.PARAGRAPH_BYTES
        text = f"{awaited} ({safe_line(wait.prompt_preview, room)})"
        return Standstill("person", (wait.subject,), text, _first_way(run_id, wait), wait.since)
    if wait.kind == "store":
        text = f"{awaited}: {safe_line(wait.prompt_preview, limits.PARAGRAPH_BYTES)}"
        return Standstill("store", ("the run",), text, _STORE_HELPS, wait.since)
    # the rest of the words has the time of the next try in its own way
    problem, _, _ = wait.prompt_preview.partition(": the provider of ")
    shown = safe_line(problem, limits.LINE_BYTES)
    text = f"{awaited}: {shown}, {_next_try(wait.expires_at)}"
    return Standstill("provider", (wait.subject,), text, _PROVIDER_HELPS, wait.since)


def ways_to_decide(run_id: str, wait: Wait) -> dict[str, str]:
    """Returns the commands that end a wait for a person, by choice."""
    named = (short_id(run_id), wait.id)
    approve = hint("approve", *named)
    deny = hint("deny", *named, "--why", "TEXT")
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
        found["retry"] = hint("retry", named[0], wait.subtask_id)
        found["skip"] = hint("skip", named[0], wait.subtask_id)
    return found


def _first_way(run_id: str, wait: Wait) -> str:
    """Returns the command that ends a wait.

    For an approval, the command that shows the content comes first.
    """
    first, *others = ways_to_decide(run_id, wait).values()
    if not others:
        return first
    return f"{hint('show', short_id(run_id), wait.id)}, then {first}"


async def explain_silence(client: Client, error: NoAnswer) -> CommandFailed:
    """Returns the error for a silent run, with the cause that the server reports."""
    run = Run(client, error.run_id)
    causes = await observed_standstills(run, await run.describe(), answered=False)
    why = causes[0].line if causes else str(error)
    return CommandFailed(UNREACHABLE, f"run '{run.id}' does not answer: {why}")


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
    asked = datetime.now(UTC) - RPC_TIMEOUT  # without a task a Worker was asked in vain, just now
    if queued.seconds:
        asked = _to_datetime(pending.scheduled_time)
    return missing_worker(seen, build, asked, since)


def missing_worker(seen: Polled, build: str, asked: datetime, since: str | None) -> Standstill:
    """Returns the wait for a Worker, optionally of a build.

    If a Worker has polled since the run `asked` for one, none needs to be started.
    """
    who = ("the run",)
    if seen.none_current and not build:
        text = f"a current build ({seen.none_current})"
        return Standstill("worker", who, text, seen.set_current, since)

    at_work = seen.polled_since(asked, build)
    if at_work:
        text = f"a Worker to take it up: {workers_line(at_work)}"
        return Standstill("worker", who, text, _TAKEN_UP, since)

    text = "a Worker"
    if build:
        text = f"a Worker of build {build}"
    elif seen.workers:
        text = f"a Worker (the last one was {workers_line(seen.workers)})"
    start = f"start one with {hint('worker', SUPERVISOR_BUILD_ID=build)}"
    return Standstill("worker", who, text, f"{start}; the run is safe and continues then", since)


async def _open_workflows(
    run: Run,
    described: WorkflowExecutionDescription,
) -> list[WorkflowExecutionDescription]:
    """Returns the run with a limited number of its open worker agents and nested runs."""
    seen = [described]
    for each in seen:  # nested supervisors join while it goes
        if each.workflow_type != RUN_TYPE:
            continue
        children = [child.workflow_id for child in each.raw_description.pending_children]
        looks = map(run.describe, children[: _WORKFLOWS - len(seen)])
        found = await asyncio.gather(*looks, return_exceptions=True)  # one may just have ended
        seen += [child for child in found if isinstance(child, WorkflowExecutionDescription)]
    return seen


async def _of_activity(
    run: Run,
    workflow_id: str,
    activity: PendingActivityInfo,
) -> Standstill | None:
    """Returns the cause for which a call does not go on; None for one at work."""
    who = (subtask_path(workflow_id, run.id) or activity.activity_type.name,)
    beat = await last_beat(run, activity)
    if beat.get("held"):
        text = f"the artifact store, to keep a received answer: {beat['held']}"
        return Standstill("store", who, text, _STORE_HELPS)

    queue = activity.activity_options.task_queue.name
    kind, options = worker_of(queue)
    start = f"start one with {hint('worker', *options)}"
    due = _to_datetime(activity.next_attempt_schedule_time)
    queued = max(_to_datetime(activity.scheduled_time), due)
    is_queued = activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    if is_queued and datetime.now(UTC) - queued > _QUEUED_LONG:
        polled = await read_pollers(run.client, queue)
        if not polled.served:
            return Standstill("worker", who, f"{kind}: there is none", start, queued.isoformat())

    # An attempt with a heartbeat is at work, whatever became of those before it.
    if activity.attempt < 2 or not activity.HasField("last_failure") or is_at_work(activity):
        return None
    failure = await readable(activity.last_failure, run.client.data_converter)
    wait = (due - datetime.now(UTC)).total_seconds()
    # the number is that of the attempt under way, else of the next one
    when = f"in {wait:.0f} s" if wait > 0 else "under way"
    tried = f"attempt {activity.attempt} {when}"
    if failure.HasField("timeout_failure_info"):
        polled = await read_pollers(run.client, queue)
        helps = f"no other one serves its queue: {start}"
        if polled.served:
            helps = "another Worker takes it up"
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
        first = groups.setdefault(key, item)
        subjects = tuple(dict.fromkeys([*first.subjects, *item.subjects]))
        earliest = min(filter(None, [first.since, item.since]), default=None)
        groups[key] = replace(first, subjects=subjects, since=earliest)
    return list(groups.values())


def _to_datetime(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


def _next_try(at: JsonValue) -> str:
    return f"next try at {_clock_time(str(at))}" if at else "it is being tried"


def _clock_time(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
