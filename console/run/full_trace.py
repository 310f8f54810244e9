"""All that happened in a run, oldest first: its own events, and the turns and tool calls of its worker agents."""

from datetime import UTC, datetime

from temporalio.client import WorkflowExecutionDescription

from activities.contracts.run_contracts import Published
from activities.model.conversation import ConversationStore
from activities.replies.agent_story import AgentStories, below, stored_events
from activities.store.artifacts import ArtifactError, ArtifactStore
from console.command import UNREACHABLE, CommandFailed
from console.run.recorded_events import recorded_events
from console.run.run_handle import RUN_TYPE, NoAnswer, RunHandle, is_open, subtask_path
from supervision.base.store_keys import calls_of
from supervision.contract.status import TraceEvent


async def full_trace(run: RunHandle, store: ArtifactStore | None) -> list[TraceEvent]:
    """Returns the events, numbered through. Raises CommandFailed if neither server nor store know the run.

    An ended run's are in the store. Those of an open one come from a Worker, or out of the histories where none
    answers; the conversations come from the journal of model calls. Without a store they are left out.
    """
    try:
        described = await run.require()
    except CommandFailed:
        stored = await _stored(run.id, store)
        if stored is None or store is None:
            raise
        return await AgentStories(store, ConversationStore(store)).whole(stored)
    events = None if is_open(described) else await _stored(run.id, store)
    if events is None:
        events = await _of_workflow(run, run.id)
    if store is None:
        return events
    stories = AgentStories(store, ConversationStore(store))
    if is_open(described):
        first_run_id = described.raw_description.workflow_execution_info.first_run_id
        events += await _under_way(run, described, first_run_id, stories, store)
    return await stories.whole(events)


async def _stored(run_id: str, store: ArtifactStore | None) -> list[TraceEvent] | None:
    """Returns the events that the run stored at its end; None if there are none, or the store is away."""
    try:
        ended = await store.latest_ended(run_id) if store else None
        if store is None or ended is None:
            return None
        return stored_events(await store.get(Published.model_validate_json(ended).trace_ref))
    except (ArtifactError, ValueError):
        return None


async def _of_workflow(run: RunHandle, workflow_id: str) -> list[TraceEvent]:
    """Returns the events of a supervisor: those that it still has, and older ones as its history tells them."""
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
    except NoAnswer as error:
        recorded = await recorded_events(run, workflow_id)
        if not recorded:
            raise CommandFailed(UNREACHABLE, f"the trace of '{run.id}' is not known: {error}") from error
        return recorded
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
    """Returns what worker agents and nested runs did that have not ended; `first_run_id` is the root's."""
    events: list[TraceEvent] = []
    for child in described.raw_description.pending_children:
        path = subtask_path(child.workflow_id, described.id)
        try:
            below_it = await run.describe(child.workflow_id)
            if below_it.workflow_type == RUN_TYPE:
                own = await _of_workflow(run, child.workflow_id)
                own += await _under_way(run, below_it, first_run_id, stories, store)
                events += [below(path, event) for event in own]
            elif head := await _last_call(store, calls_of(run.id, first_run_id, child.workflow_id)[0]):
                events += await stories.of_conversation(head, path, datetime.now(UTC).isoformat())
        except (CommandFailed, ArtifactError):  # it has just ended, or its store is another one
            continue
    return events


async def _last_call(store: ArtifactStore, prefix: str) -> str | None:
    """Returns the key of the latest model call of a workflow; None if none was answered yet."""
    calls = [meta async for meta in store.objects(prefix)]
    return max(calls, key=lambda meta: meta["last_modified"])["path"] if calls else None
