"""Starting runs of a test team, and looking at them the way people do: result, error, queries, history, Web UI."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ApplicationError

from temporal_supervisor.client import NoAnswer
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.status import Status, Wait
from temporal_supervisor.supervision.contract.updates import ExtendLimits
from temporal_supervisor.trees import tree_status
from tests.scripted_model import Call, Script, ScriptedModel
from tests.waiting import until
from workflows.supervisor import SupervisorWorkflow

Handle = WorkflowHandle[SupervisorWorkflow, RunResult]

GOAL = "Weigh the pears of the garden"


async def start(client: Client, run_id: str, team: str | dict[str, Any], **fields: Any) -> Handle:
    """Starts a run of that team, without review and replanning where `fields` do not ask for them."""
    request = RunRequest(**{"goal": GOAL, "team": team, "max_reviews": 0, "max_replans": 0, **fields})
    return await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")


async def run(client: Client, run_id: str, team: str | dict[str, Any], **fields: Any) -> RunResult:
    """Returns the result of such a run."""
    return await (await start(client, run_id, team, **fields)).result()


async def failure(handle: Handle) -> ApplicationError:
    """Returns the error that a run fails with."""
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ApplicationError)
    return caught.value.cause


async def refusal(call: Awaitable[Any]) -> str:
    """Returns the sentence with which an update is refused."""
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await call
    return str(caught.value.cause)


def partial_result(error: ApplicationError) -> RunResult:
    """Returns the result that a failed run carries in its error."""
    return RunResult.model_validate(error.details[0])


def found(result: RunResult, place: int = 0) -> Finding:
    """Returns the finding of a subtask."""
    finding = result.subtasks[place].finding
    assert finding is not None
    return finding


async def end_soon(handle: Handle, seconds: float = 0.5) -> None:
    """Moves a run's deadline so near that so much is left to its work on subtasks."""
    shown = await status_of(handle)
    began = datetime.fromisoformat(shown.deadline_at) - timedelta(seconds=shown.limits.deadline_seconds)
    end = datetime.now(UTC) - began + timedelta(seconds=seconds)
    share = 1 - limits.SYNTHESIS_RESERVE_SHARE
    await handle.execute_update(SupervisorWorkflow.extend_limits, ExtendLimits(deadline=end / share))


# --- queries --------------------------------------------------------------------------------------------


async def status_of(handle: Handle) -> Status:
    """Returns the status that a run shows."""
    return await handle.query(SupervisorWorkflow.status)


async def waits_of(handle: Handle) -> list[Wait]:
    """Returns what waits in a run and in those nested in it; nothing while no Worker says so."""
    with contextlib.suppress(NoAnswer):
        return (await tree_status(handle._client, handle.id)).waiting
    return []


async def is_in(handle: Handle, state: str, subtask_id: str) -> bool:
    """True if a run has that subtask, in that state."""
    return (subtask_id, state) in {(report.id, report.state) for report in (await status_of(handle)).subtasks}


async def waiting_status(handle: Handle) -> Status:
    """Returns the status of a run that shows that it waits for its provider: a later one may show the next try."""
    seen: list[Status] = []

    async def waits() -> bool:
        seen.append(await status_of(handle))
        return seen[-1].flags.waiting_provider

    await until(waits)
    return seen[-1]


async def waits_for_provider(handle: Handle) -> bool:
    """True if a run shows that flag."""
    return (await status_of(handle)).flags.waiting_provider


async def events(handle: Handle) -> list[str]:
    """Returns the types of a run's events."""
    return [event.type for event in (await handle.query(SupervisorWorkflow.trace)).events]


async def details(handle: Handle) -> str:
    """Returns the Markdown that the Web UI shows of a run."""
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details


# --- the server's record --------------------------------------------------------------------------------


async def closed(handle: Handle) -> bool:
    """True if a run has ended."""
    return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING


async def settled(handle: Handle) -> int:
    """Returns the length of a history to which nothing is added any more: children may still report."""
    length = -1
    while length != (length := (await handle.describe()).history_length):
        await asyncio.sleep(1.5)
    return length


async def search_attribute(handle: Handle, name: str) -> str | None:
    """Returns a Keyword that the server lists of a run."""
    return (await handle.describe()).typed_search_attributes.get(SearchAttributeKey.for_keyword(name))


async def scheduled(client: Client, workflow_id: str, kind: str) -> list[HistoryEvent]:
    """Returns the events with which a workflow's activities, timers or children began, in order."""
    wanted = {
        "activity": EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        "timer": EventType.EVENT_TYPE_TIMER_STARTED,
        "child": EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
    }[kind]
    history = client.get_workflow_handle(workflow_id).fetch_history_events()
    return [event async for event in history if event.event_type == wanted]


async def queues(client: Client, workflow_id: str) -> list[str]:
    """Returns the task queues of a workflow's activities, in order."""
    begun = await scheduled(client, workflow_id, "activity")
    return [event.activity_task_scheduled_event_attributes.task_queue.name for event in begun]


async def activity_is(state: str, handle: Handle, name: str) -> bool:
    """True if a workflow's history says that of an activity of that type, as `completed` or `cancel_requested`."""
    events = (await handle.fetch_history()).events
    types = {event.event_id: event.activity_task_scheduled_event_attributes.activity_type.name for event in events}
    said = [getattr(event, f"activity_task_{state}_event_attributes").scheduled_event_id for event in events]
    return name in {types[event_id] for event_id in said if event_id}


async def is_answered(client: Client, workflow_id: str) -> bool:
    """True if no activity of an open workflow is under way."""
    described = await client.get_workflow_handle(workflow_id).describe()
    assert described.status is WorkflowExecutionStatus.RUNNING
    return not described.raw_description.pending_activities


@workflow.defn(sandboxed=False)
class Caller:
    """A workflow of a program's own that has a run as its child."""

    @workflow.run
    async def run(self, run_id: str, more: dict[str, Any]) -> None:
        request = {"goal": GOAL, **more}
        await workflow.execute_child_workflow("SupervisorWorkflow", request, id=run_id, task_queue="supervisor")


# --- a test's own run ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lab:
    """One run, of the team `lab` unless a file or a test says otherwise, and the model that plays its calls."""

    client: Client
    model: ScriptedModel
    run_id: str
    usual: dict[str, Any] = field(default_factory=dict)

    def named(self, run_id: str) -> "Lab":
        """Returns the same for another run."""
        return replace(self, run_id=run_id)

    def on(self, client: Client) -> "Lab":
        """Returns the same on another server."""
        return replace(self, client=client)

    def play(self, played: Script) -> None:
        """Has the model answer the run's calls by that script."""
        self.model.play(self.run_id, played)

    async def start(self, **fields: Any) -> Handle:
        """Starts the run."""
        return await start(self.client, self.run_id, **{"team": "lab", **self.usual, **fields})

    async def run(self, **fields: Any) -> RunResult:
        """Starts the run, and returns its result."""
        return await (await self.start(**fields)).result()

    async def failure(self, **fields: Any) -> ApplicationError:
        """Starts the run, and returns the error that it fails with."""
        return await failure(await self.start(**fields))

    @property
    def calls(self) -> list[Call]:
        """The calls that the model got, in order."""
        return self.model.of(self.run_id)

    @property
    def steps(self) -> list[str]:
        """The names of those calls, below the run."""
        return self.model.steps(self.run_id)

    @property
    def repeated(self) -> list[str]:
        """The calls that were sent more than once."""
        return [step for step, times in Counter(self.steps).items() if times > 1]

    def sent(self, *steps: str) -> Callable[[], bool]:
        """Returns a condition for `until`: the model was sent all of those steps."""
        return lambda: set(steps) <= set(self.steps)

    def call(self, step: str) -> Call:
        """Returns the last call of that step."""
        return next(call for call in reversed(self.calls) if call.step.call == f"{self.run_id}/{step}")

    def prompt(self, step: str) -> str:
        """Returns the last message of that step's call."""
        return self.call(step).step.prompt

    def system(self, step: str) -> str:
        """Returns the system prompt of that step's call."""
        prompts = self.call(step).step.body["system"]
        return prompts if isinstance(prompts, str) else "\n".join(block["text"] for block in prompts)

    async def scheduled(self, kind: str) -> list[HistoryEvent]:
        """As the function, of the run itself."""
        return await scheduled(self.client, self.run_id, kind)

    async def labels(self, kind: str) -> list[str]:
        """Returns the labels that the Web UI shows of the run's activities, timers or children, in order."""
        begun = await self.scheduled(kind)
        return [str(json.loads(event.user_metadata.summary.data or b'""')) for event in begun]

    async def started_children(self) -> list[str]:
        """Returns the ids of the child workflows that the run started, in order."""
        begun = await self.scheduled("child")
        return [event.start_child_workflow_execution_initiated_event_attributes.workflow_id for event in begun]
