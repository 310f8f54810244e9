"""The trace and the end of a run, from the server or the store, and the exit code."""

import contextlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.client import WorkflowExecutionDescription

from activities.contracts.run_contracts import Published
from activities.replies.agent_story import AgentStories, in_run_above, stored_events
from activities.store.artifacts import (
    ArtifactError,
    ArtifactMissing,
    ArtifactStore,
    ArtifactUnavailable,
)
from activities.store.reading import read_plan
from temporal_supervisor.console.base.command import CANCELLED, DONE, FAILED
from temporal_supervisor.messages import NoRun
from temporal_supervisor.outcomes import WAS_CANCELLED, Ending, RunOutcome, is_open, state_word
from temporal_supervisor.runs import Run
from temporal_supervisor.starting import RUN_TYPE
from temporal_supervisor.supervision.base.store_keys import calls_of
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.run.attempt_rules import subtask_path

_CODES = {"cancelled": CANCELLED, "failed": FAILED, "terminated": FAILED, "timed out": FAILED}


def exit_code(outcome: RunOutcome) -> int:
    """Returns the exit code of a command that shows an outcome."""
    return _CODES.get(outcome.state, DONE)


async def outcome_so_far(
    run: Run,
    store: ArtifactStore | None,
    *,
    wait: bool = False,
) -> RunOutcome:
    """Returns the end of a run, or the present result of an open one.

    With `wait` it waits for the end. Raises NoRun and NoAnswer.
    """
    try:
        described = await run.require()
    except NoRun:
        stored = await stored_end(run.id, store)
        if stored is None:
            raise
        _, outcome = stored
        return replace(outcome, forgotten=True)
    if wait or not is_open(described):
        return await run_outcome(run, store)
    return RunOutcome(state_word(described), await run.result_so_far())


async def run_outcome(run: Run, store: ArtifactStore | None) -> RunOutcome:
    """Waits for the run's end, however long. Raises RPCError if the server goes away."""

    async def stored_result() -> RunResult | None:
        stored = await stored_end(run.id, store)
        if stored is None:
            return None
        _, outcome = stored
        return outcome.result

    return await run.outcome(stored_result)


async def stored_end(
    run_id: str,
    store: ArtifactStore | None,
) -> tuple[Published, RunOutcome] | None:
    """Returns the stored end of a run with the whole result.

    None if there is none, or the store is away.
    """
    if store is None:
        return None
    try:
        published = await published_end(run_id, store)
        if published is None:
            return None
        result = await read_result(store, published.result_ref)
    except (ArtifactMissing, ArtifactUnavailable, ValidationError):
        return None
    facts = published.facts
    if facts is None or facts.phase == "done":
        return published, RunOutcome("completed", result)
    if facts.phase == "cancelled":
        return published, RunOutcome("cancelled", result, WAS_CANCELLED)
    why = Ending("Unknown", "it gave no answer")
    if facts.error:
        why = Ending(facts.error.type, facts.error.message)
    return published, RunOutcome("failed", result, why)


async def published_end(run_id: str, store: ArtifactStore) -> Published | None:
    """Returns the places of an ended run's result and trace; None if they are not stored."""
    ended = await store.latest_ended(run_id)
    return Published.model_validate_json(ended) if ended else None


async def stored_plan(run_id: str, store: ArtifactStore | None) -> Plan | None:
    """Returns the last plan of an ended run; None if it is not stored, or the store is away."""
    if store is None:
        return None
    try:
        ended = await published_end(run_id, store)
        if ended is None or ended.facts is None or not ended.facts.plan_ref:
            return None
        return await read_plan(store, ended.facts.plan_ref)
    except (ArtifactError, ValidationError):
        return None


async def read_result(store: ArtifactStore, ref: str) -> RunResult:
    """Returns the whole result at a reference.

    Raises ArtifactMissing, and ArtifactChanged if it was changed.
    """
    result = RunResult.model_validate_json(await store.get(ref))
    return result.model_copy(update={"result_ref": ref})


async def events_of(run: Run, workflow_id: str) -> list[TraceEvent]:
    """Returns a supervisor's events from its history.

    If the history does not replay here, they are the latest events, from a query.
    """
    # these load Workers, and the workflows with their contracts: 0.4 s for some commands only
    from temporalio.worker import (
        ExecuteWorkflowInput,
        Interceptor,
        WorkflowInboundInterceptor,
        WorkflowInterceptorClassInput,
    )

    from temporal_supervisor.runtime.workers import replayer
    from workflows.supervisor import SupervisorWorkflow

    events: list[TraceEvent] = []

    class Watched(WorkflowInboundInterceptor):
        async def execute_workflow(self, given: ExecuteWorkflowInput) -> Any:
            supervisor: SupervisorWorkflow = workflow.instance()
            events.extend(supervisor.trace().events)
            supervisor._run_state().trace.seen = events.append
            return await super().execute_workflow(given)

    class Watching(Interceptor):
        def workflow_interceptor_class(self, given: WorkflowInterceptorClassInput) -> type[Watched]:
            return Watched

    replays = replayer(
        [SupervisorWorkflow],
        converter=run.client.data_converter,
        interceptors=[Watching()],
    )
    history = await run.client.get_workflow_handle(workflow_id).fetch_history()
    done = await replays.replay_workflow(history, raise_on_replay_failure=False)
    if events and done.replay_failure is None:
        return events
    page = await run.trace(0, workflow_id)
    return page.events


async def full_trace(run: Run, store: ArtifactStore | None) -> list[TraceEvent]:
    """Returns all events of a run, numbered. Raises NoRun if server and store lack the run.

    Events of an ended run are in the store; those of an open run come from histories. Conversations
    come from the journal of model calls, and are left out without a store.
    """
    try:
        described = await run.require()
    except NoRun:
        forgotten = await stored_trace(run.id, store)
        if forgotten is None or store is None:
            raise
        return await AgentStories(store).with_conversations(forgotten)

    stored = None if is_open(described) else await stored_trace(run.id, store)
    events = await events_of(run, run.id) if stored is None else stored
    if store is None:
        return [event for event in events if _has_time(event)]

    stories = AgentStories(store)
    events = await _with_waiting(events, stories)
    if is_open(described):
        first_run_id = described.raw_description.workflow_execution_info.first_run_id
        events += await _under_way(run, described, first_run_id, stories, store)
    return await stories.with_conversations(events)


def _has_time(event: TraceEvent) -> bool:
    """True for an event of a history: events made by the end of a replay have no time."""
    return datetime.fromisoformat(event.at).timestamp() > 0


async def _with_waiting(events: list[TraceEvent], stories: AgentStories) -> list[TraceEvent]:
    """Returns the events with the conversations of agents that wait for people.

    These agents have no open workflow. The stop at the end of the replay, which never happened,
    names them.
    """
    told = [event for event in events if _has_time(event)]
    now = datetime.now(UTC).isoformat()
    for event in events:
        head = event.data.get("head")
        if head and not _has_time(event):
            with contextlib.suppress(ArtifactError):
                told += await stories.of_conversation(str(head), event.subtask_id, now)
    return told


async def stored_trace(run_id: str, store: ArtifactStore | None) -> list[TraceEvent] | None:
    """Returns the events that the run stored at its end.

    None if there are none, or the store is away.
    """
    if store is None:
        return None
    try:
        ended = await published_end(run_id, store)
        return stored_events(await store.get(ended.trace_ref)) if ended else None
    except (ArtifactError, ValueError):
        return None


async def _under_way(
    run: Run,
    described: WorkflowExecutionDescription,
    first_run_id: str,
    stories: AgentStories,
    store: ArtifactStore,
) -> list[TraceEvent]:
    """Returns the events of open worker agents and nested runs.

    `first_run_id` is the root's.
    """
    events: list[TraceEvent] = []
    for child in described.raw_description.pending_children:
        child_id = child.workflow_id
        path = subtask_path(child_id, described.id)
        try:
            below_it = await run.describe(child_id)
            if below_it.workflow_type == RUN_TYPE:
                own = await _with_waiting(await events_of(run, child_id), stories)
                own += await _under_way(run, below_it, first_run_id, stories, store)
                events += [in_run_above(path, event) for event in own]
                continue

            folder, *_ = calls_of(run.id, first_run_id, child_id)
            calls = [call async for call in store.objects(folder)]
            if calls:
                head = max(calls, key=lambda meta: meta["last_modified"])["path"]
                events += await stories.of_conversation(head, path, datetime.now(UTC).isoformat())
        except (NoRun, ArtifactError):  # it has just ended, or its store is another one
            continue
    return events
