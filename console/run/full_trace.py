"""All that happened in a run, oldest first: its own events, and the turns and tool calls of its worker agents."""

import re
from datetime import UTC, datetime
from typing import Any

from temporalio.api.common.v1 import Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecutionDescription

from activities.contracts.packed import FindingRefs
from activities.contracts.planning_contracts import PlanReply
from activities.contracts.run_contracts import Published
from activities.model.conversation import ConversationStore
from activities.replies.agent_story import AgentStories, below, stored_events
from activities.store.artifacts import ArtifactError, ArtifactStore
from console.command import CommandFailed
from console.run.run_handle import RUN_TYPE, NoAnswer, RunHandle, is_open, subtask_path
from runtime.payloads import readable
from supervision.base import limits
from supervision.base.store_keys import calls_of
from supervision.base.text import cut
from supervision.contract.base import Model
from supervision.contract.status import TraceEvent
from supervision.run.events import plan_accepted, reviewed

_CHILD = re.compile(r"/(?P<subtask>[^/]+)/(?P<attempt>\d+)(?:\.\w+)*$")


async def full_trace(run: RunHandle, store: ArtifactStore | None) -> list[TraceEvent]:
    """Returns the events, numbered through. Raises CommandFailed if neither server nor store know the run.

    Those of an ended run are in the store. Those of an open one come from a Worker, or out of the histories where none
    answers. The conversations come from the journal of model calls; without a store they are left out.
    """
    try:
        described = await run.require()
    except CommandFailed:
        if (forgotten := await stored_trace(run.id, store)) is None or store is None:
            raise
        return await AgentStories(store, ConversationStore(store)).whole(forgotten)
    stored = None if is_open(described) else await stored_trace(run.id, store)
    events = await _of_workflow(run, run.id) if stored is None else stored
    if store is None:
        return events
    stories = AgentStories(store, ConversationStore(store))
    if is_open(described):
        first_run_id = described.raw_description.workflow_execution_info.first_run_id
        events += await _under_way(run, described, first_run_id, stories, store)
    return await stories.whole(events)


async def stored_trace(run_id: str, store: ArtifactStore | None) -> list[TraceEvent] | None:
    """Returns the events that the run stored at its end; None if there are none, or the store is away."""
    try:
        ended = await store.latest_ended(run_id) if store else None
        if store is None or ended is None:
            return None
        return stored_events(await store.get(Published.model_validate_json(ended).trace_ref))
    except (ArtifactError, ValueError):
        return None


async def _of_workflow(run: RunHandle, workflow_id: str) -> list[TraceEvent]:
    """Returns the events of a supervisor: those that it still has, and older ones out of its history."""
    events: list[TraceEvent] = []
    cursor, dropped = 0, 0
    try:
        while True:
            page = await run.trace(cursor, workflow_id)
            events += page.events
            dropped += page.dropped
            if page.next_cursor == cursor or not page.events:
                break
            cursor = page.next_cursor
    except NoAnswer:
        if recorded := await recorded_events(run, workflow_id):
            return recorded
        raise
    if not dropped or not events:
        return events
    first = datetime.fromisoformat(events[0].at)
    older = await recorded_events(run, workflow_id)
    return [*(event for event in older if datetime.fromisoformat(event.at) < first), *events]


async def _under_way(
    run: RunHandle,
    described: WorkflowExecutionDescription,
    first_run_id: str,
    stories: AgentStories,
    store: ArtifactStore,
) -> list[TraceEvent]:
    """Returns the events of worker agents and nested runs that have not ended; `first_run_id` is the root's."""
    events: list[TraceEvent] = []
    for child in described.raw_description.pending_children:
        path = subtask_path(child.workflow_id, described.id)
        try:
            below_it = await run.describe(child.workflow_id)
            if below_it.workflow_type == RUN_TYPE:
                own = await _of_workflow(run, child.workflow_id)
                own += await _under_way(run, below_it, first_run_id, stories, store)
                events += [below(path, event) for event in own]
                continue
            calls = [call async for call in store.objects(calls_of(run.id, first_run_id, child.workflow_id)[0])]
            if calls:
                head = max(calls, key=lambda meta: meta["last_modified"])["path"]
                events += await stories.of_conversation(head, path, datetime.now(UTC).isoformat())
        except (CommandFailed, ArtifactError):  # it has just ended, or its store is another one
            continue
    return events


class _Call(Model):
    """What the inputs of planning, review and synthesis say."""

    attempt: int = 1
    revision: int = 1
    round: int = 1
    number: int = 1
    findings: FindingRefs = []
    mode: str = "final"


class _Verdicts(Model):
    verdicts: list[dict[str, Any]] = []
    missing: list[str] = []


class _ChildInput(Model):
    """A worker agent's assignment; a nested supervisor's has no role."""

    role: dict[str, Any] = {}


class _ChildEnd(Model):
    """What a child's result or error says of where it can be read."""

    turns: int = 0
    head: str | None = None
    trace_ref: str | None = None


async def recorded_events(run: RunHandle, workflow_id: str) -> list[TraceEvent]:
    """Returns the events in the history of a supervisor: calls of its own, attempts of subtasks, how they ended."""
    recorder = _Recorder(run.client)
    async for event in run.client.get_workflow_handle(workflow_id).fetch_history_events():
        await recorder.take(event)
    return [event.model_copy(update={"seq": number}) for number, event in enumerate(recorder.events, 1)]


class _Recorder:
    def __init__(self, client: Client) -> None:
        self.events: list[TraceEvent] = []
        self._client = client
        self._calls: dict[int, tuple[str, _Call]] = {}

    async def take(self, event: HistoryEvent) -> None:
        """Adds the event of the run that an event of the history stands for, if there is one."""
        kind = (event.WhichOneof("attributes") or "").removesuffix("_event_attributes")
        attributes: Any = getattr(event, f"{kind}_event_attributes", None)
        if kind == "activity_task_scheduled":
            name, call = attributes.activity_type.name, await self._read(attributes.input, _Call)
            self._calls[event.event_id] = name, call
            if name == "plan":
                self._note(event, "plan_requested", attempt=call.attempt, revision=call.revision)
            elif name == "synthesize":
                count = len(call.findings)
                self._note(event, "synthesis_started", number=call.number, findings=count, mode=call.mode)
        elif kind == "activity_task_completed" and attributes.scheduled_event_id in self._calls:
            await self._completed(event, *self._calls.pop(attributes.scheduled_event_id), attributes.result)
        elif kind.startswith(("child_workflow", "start_child")):
            await self._child(event, kind, attributes)
        elif kind == "workflow_execution_cancel_requested":
            self._note(event, "cancel_requested")

    async def _completed(self, event: HistoryEvent, name: str, call: _Call, result: Payloads) -> None:
        if name == "plan":
            reply = await self._read(result, PlanReply)
            if reply.plan:
                self._note(event, "plan_accepted", **plan_accepted(reply.plan, reply.strategy))
            elif reply.problems:
                self._note(event, "plan_rejected", attempt=call.attempt, problems=list(reply.problems))
        elif name == "review":
            review = await self._read(result, _Verdicts)
            feedback = {str(item.get("subtask_id")): str(item.get("feedback")) for item in review.verdicts}
            self._note(event, "reviewed", **reviewed(call.round, feedback, review.missing))

    async def _child(self, event: HistoryEvent, kind: str, attributes: Any) -> None:
        place = _CHILD.search(getattr(attributes, "workflow_id", "") or attributes.workflow_execution.workflow_id)
        if place is None:
            return
        subtask, failure = place["subtask"], getattr(attributes, "failure", Failure())
        failure = await readable(failure, self._client.data_converter)
        while failure.HasField("cause"):
            failure = failure.cause
        if kind == "start_child_workflow_execution_initiated":
            role = (await self._read(attributes.input, _ChildInput)).role.get("name")
            self._note(event, "subtask_started", subtask, attempt=int(place["attempt"]), role=role)
        elif kind == "child_workflow_execution_completed":
            end = await self._read(attributes.result, _ChildEnd)
            self._note(event, "subtask_completed", subtask, turns=end.turns, head=end.head, trace_ref=end.trace_ref)
        elif kind == "child_workflow_execution_failed":
            told = failure.application_failure_info
            end = await self._read(told.details, _ChildEnd)
            why = {"error": told.type or "Unexpected", "message": cut(failure.message, limits.SENTENCE_BYTES)}
            self._note(event, "subtask_failed", subtask, **why, head=end.head, trace_ref=end.trace_ref)
        elif kind == "child_workflow_execution_canceled":
            self._note(event, "subtask_cancelled", subtask)

    async def _read(self, payloads: Payloads, model: type[Model]) -> Any:
        """Returns the first value as that model, empty if it can't be read."""
        try:
            return (await self._client.data_converter.decode(payloads.payloads, [model]))[0]
        except Exception:  # converters raise whatever they like
            return model.model_construct()

    def _note(self, event: HistoryEvent, kind: str, subtask_id: str | None = None, /, **data: Any) -> None:
        at = event.event_time.ToDatetime(tzinfo=UTC).isoformat()
        kept = {name: value for name, value in data.items() if name not in ("head", "trace_ref") or value}
        self.events.append(TraceEvent(seq=0, at=at, type=kind, subtask_id=subtask_id, data=kept))
