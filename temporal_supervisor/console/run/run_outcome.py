"""All that happened in a run, and how it ended: its state, its result or the partial one, and the exit code."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.client import WorkflowExecutionDescription, WorkflowFailureError
from temporalio.exceptions import ApplicationError, TerminatedError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeout
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from activities.contracts.run_contracts import Published
from activities.replies.agent_story import AgentStories, below, stored_events
from activities.store.artifacts import ArtifactError, ArtifactMissing, ArtifactStore, ArtifactUnavailable
from activities.store.reading import read_plan
from temporal_supervisor.console.base.command import CANCELLED, DONE, FAILED, CommandFailed
from temporal_supervisor.console.run.run_handle import RUN_TYPE, NoAnswer, RunHandle, is_open, state_word
from temporal_supervisor.supervision.base.store_keys import calls_of
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.run.attempt_rules import subtask_path


@dataclass(frozen=True)
class Ending:
    """Why a run gave no answer."""

    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


_OPEN = re.compile(r"^it is (\w+)$")  # the reason of a subtask that has not ended
_CANCELLED = Ending("Cancelled", "the run was cancelled")


@dataclass(frozen=True)
class RunOutcome:
    """The end of a run, or its result so far.

    `state` is the run's state in Temporal. `error` says why there is no answer, None if there is one; its type is one
    of the run's errors, or `Cancelled`, `Terminated`, `TimedOut`. `forgotten`: the server has no such run any more.
    """

    code: int
    state: str
    result: RunResult | None = None
    error: Ending | None = None
    forgotten: bool = False

    @property
    def said(self) -> str:
        """The state and why there is no answer, in a sentence; empty if there is one."""
        if self.error is None:
            return ""
        same = self.error.type.lower() == self.state.replace(" ", "")
        return f"{self.state}: {self.error.message if same else self.error}"

    def as_json(self, run_id: str) -> dict[str, object]:
        """Returns what the screen says, for programs: the fields of the result, and how the run ended."""
        fields = self.result.model_dump(mode="json") if self.result else {}
        return {"run_id": run_id, "state": self.state, "error": self.error, **fields}


async def outcome_so_far(run: RunHandle, store: ArtifactStore | None, *, wait: bool = False) -> RunOutcome:
    """Returns how a run ended, or the result so far of an open one. Raises CommandFailed and NoAnswer."""
    try:
        described = await run.require()
    except CommandFailed:
        if stored := await stored_end(run.id, store):
            return replace(stored[1], forgotten=True)
        raise
    if wait or not is_open(described):
        return await run_outcome(run, store)
    return RunOutcome(DONE, state_word(described), await run.result())


async def run_outcome(run: RunHandle, store: ArtifactStore | None) -> RunOutcome:
    """Waits for the run's end, as long as that takes. Raises RPCError if the server goes away."""
    try:
        return RunOutcome(DONE, "completed", await run.handle.result())
    except WorkflowFailureError as error:
        cause = error.cause
    if is_cancelled_exception(cause):
        return RunOutcome(CANCELLED, "cancelled", await _partial(run, store), _CANCELLED)
    if isinstance(cause, ApplicationError):
        return RunOutcome(FAILED, "failed", _in_details(cause), Ending(cause.type or "Error", cause.message))
    if isinstance(cause, TerminatedError):
        if state_word(await run.describe()) != "terminated":  # a reset took its place, as `repair` does it
            return await run_outcome(run, store)
        return RunOutcome(FAILED, "terminated", await _partial(run, store), Ending("Terminated", str(cause)))
    if isinstance(cause, TemporalTimeout):
        why = Ending("TimedOut", "the run ran into its Temporal timeout")
        return RunOutcome(FAILED, "timed out", await _partial(run, store), why)
    return RunOutcome(FAILED, "failed", None, Ending("Error", str(cause)))


async def stored_end(run_id: str, store: ArtifactStore | None) -> tuple[Published, RunOutcome] | None:
    """Returns what a run stored at its end, with the whole result; None if there is nothing, or the store is away."""
    try:
        if store is None or (published := await published_end(run_id, store)) is None:
            return None
        result = await read_result(store, published.result_ref)
    except (ArtifactMissing, ArtifactUnavailable, ValidationError):
        return None
    facts = published.facts
    if facts is None or facts.phase == "done":
        return published, RunOutcome(DONE, "completed", result)
    if facts.phase == "cancelled":
        return published, RunOutcome(CANCELLED, "cancelled", result, _CANCELLED)
    why = Ending(facts.error.type, facts.error.message) if facts.error else Ending("Unknown", "it gave no answer")
    return published, RunOutcome(FAILED, "failed", result, why)


async def published_end(run_id: str, store: ArtifactStore) -> Published | None:
    """Returns where the result and the trace of an ended run are; None if the store has no end of it."""
    ended = await store.latest_ended(run_id)
    return Published.model_validate_json(ended) if ended else None


async def stored_plan(run_id: str, store: ArtifactStore | None) -> Plan | None:
    """Returns the last plan of a run that ended; None if there is none, or the store is away."""
    try:
        ended = await published_end(run_id, store) if store else None
        if store is None or ended is None or ended.facts is None or not ended.facts.plan_ref:
            return None
        return await read_plan(store, ended.facts.plan_ref)
    except (ArtifactError, ValidationError):
        return None


async def read_result(store: ArtifactStore, ref: str) -> RunResult:
    """Returns the whole result at this reference. Raises ArtifactMissing, and ArtifactChanged if it was rewritten."""
    result = RunResult.model_validate_json(await store.get(ref))
    return result.model_copy(update={"result_ref": ref})


async def _partial(run: RunHandle, store: ArtifactStore | None) -> RunResult | None:
    """Returns a result without an end: from the store, or from a Worker."""
    if stored := await stored_end(run.id, store):
        return stored[1].result
    try:
        result, ended = await run.result(), state_word(await run.describe())
        for gap in result.gaps:  # a Worker knows nothing of a sudden end
            gap.reason = _OPEN.sub(rf"{ended} while it was \1", gap.reason)
        return result.model_copy(update={"status": "partial"})
    except NoAnswer:
        return None


def _in_details(error: ApplicationError) -> RunResult | None:
    try:
        return RunResult.model_validate(error.details[0]) if error.details else None
    except ValidationError:
        return None


async def events_of(run: RunHandle, workflow_id: str) -> list[TraceEvent]:
    """Returns the events of a supervisor: out of its history, or the latest ones if that does not replay here."""
    # these load the workflows with their contracts: 0.3 s for some commands only
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

    replays = replayer([SupervisorWorkflow], converter=run.client.data_converter, interceptors=[Watching()])
    history = await run.client.get_workflow_handle(workflow_id).fetch_history()
    done = await replays.replay_workflow(history, raise_on_replay_failure=False)
    return events if events and done.replay_failure is None else (await run.trace(0, workflow_id)).events


async def full_trace(run: RunHandle, store: ArtifactStore | None) -> list[TraceEvent]:
    """Returns the events, numbered through. Raises CommandFailed if neither server nor store know the run.

    Those of an ended run are in the store, those of an open one come out of the histories. The conversations come from
    the journal of model calls; without a store they are left out.
    """
    try:
        described = await run.require()
    except CommandFailed:
        if (forgotten := await stored_trace(run.id, store)) is None or store is None:
            raise
        return await AgentStories(store).whole(forgotten)
    stored = None if is_open(described) else await stored_trace(run.id, store)
    events = await events_of(run, run.id) if stored is None else stored
    if store is None:
        return events
    stories = AgentStories(store)
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
                own = await events_of(run, child.workflow_id)
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
