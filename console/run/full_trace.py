"""All that happened in a run, oldest first: its own events, and the turns and tool calls of its worker agents."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.client import WorkflowExecutionDescription
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from activities.model.conversation import ConversationStore
from activities.replies.agent_story import AgentStories, below, stored_events
from activities.store.artifacts import ArtifactError, ArtifactStore
from console.base.command import CommandFailed
from console.run.run_handle import RUN_TYPE, NoAnswer, RunHandle, is_open, subtask_path
from console.run.run_outcome import published_end
from supervision.base.store_keys import calls_of
from supervision.contract.plan import Plan
from supervision.contract.status import TraceEvent


class Replayed(NamedTuple):
    """The plan and all events of a supervisor."""

    plan: Plan
    events: list[TraceEvent]


async def replayed(run: RunHandle, workflow_id: str) -> Replayed | None:
    """Returns a supervisor of a run as its history has it; None if the history does not replay with this program."""
    # these load the workflows with their contracts: 0.3 s for some commands only
    from runtime.workers import replayer
    from workflows.supervisor import SupervisorWorkflow

    seen: list[SupervisorWorkflow] = []
    events: list[TraceEvent] = []

    class Watched(WorkflowInboundInterceptor):
        async def execute_workflow(self, given: ExecuteWorkflowInput) -> Any:
            supervisor: SupervisorWorkflow = workflow.instance()
            events.extend(supervisor.trace().events)
            supervisor._run_state().trace.seen = events.append
            seen.append(supervisor)
            return await super().execute_workflow(given)

    class Watching(Interceptor):
        def workflow_interceptor_class(self, given: WorkflowInterceptorClassInput) -> type[Watched]:
            return Watched

    replays = replayer([SupervisorWorkflow], converter=run.client.data_converter, interceptors=[Watching()])
    history = await run.client.get_workflow_handle(workflow_id).fetch_history()
    done = await replays.replay_workflow(history, raise_on_replay_failure=False)
    return Replayed(seen[-1].plan(), events) if seen and done.replay_failure is None else None


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
        ended = await published_end(run_id, store) if store else None
        return stored_events(await store.get(ended.trace_ref)) if store and ended else None
    except (ArtifactError, ValueError):
        return None


async def _of_workflow(run: RunHandle, workflow_id: str) -> list[TraceEvent]:
    """Returns the events of a supervisor: those that it still has if these are all, else out of its history."""
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
        if recorded := await replayed(run, workflow_id):
            return recorded.events
        raise
    recorded = await replayed(run, workflow_id) if dropped else None
    return recorded.events if recorded else events


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
