"""One large size, from the start of its runs to their ends, across a kill of the Worker process."""

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from benchmarks.large.sizes import LONGEST_TASK, Size
from benchmarks.model_control import ModelControl
from benchmarks.processes import Process
from benchmarks.systems import Project, request
from supervision.contract.request import Budget
from supervision.contract.result import RunResult
from supervision.queues import WORKFLOW_QUEUE
from workflows.supervisor import SupervisorWorkflow

_LOOK = 0.25  # seconds between two looks at the model's ledger
_AGENTS_READ = 40  # worker agents of each run whose histories are read
_PLENTY = Budget(tokens=5 * 10**7, usd=100.0)

Handle = WorkflowHandle[SupervisorWorkflow, RunResult]


@dataclass(frozen=True)
class Crossing:
    """What was seen; times in seconds. `first_call` is from the new Worker's start to the first new model call."""

    name: str
    ended: int
    whole: int
    runs: int
    wall: float
    longest_task: float
    failed_tasks: list[str]
    ready: float | None = None
    first_call: float | None = None
    repeated: int = 0
    events: int = 0
    bytes: int = 0

    @property
    def holds(self) -> bool:
        """True if all runs completed and no workflow task was too long or failed."""
        return self.whole == self.runs and self.longest_task <= LONGEST_TASK and not self.failed_tasks


@dataclass
class _Tasks:
    """The workflow tasks of some histories: what was in the hands of a process `killed` then, fails without a fault."""

    killed: float = 0.0
    longest: float = 0.0
    failed: list[str] = field(default_factory=list)
    events: int = 0
    bytes: int = 0


async def cross(
    client: Client, project: Project, model: ModelControl, size: Size, base: str, patience: timedelta
) -> Crossing:
    """Runs one size and returns what was seen; runs that are not done in time are left as they are."""
    row = size.row
    model.prepare(row.latency)
    began = time.time()
    handles: list[Handle] = []
    async with project.worker:
        for number in range(row.runs):
            run_id = f"{base}-{number}"
            wanted = request(row, run_id).model_copy(update={"budget": _PLENTY, "deadline": timedelta(hours=2)})
            handles.append(
                await client.start_workflow(SupervisorWorkflow.run, wanted, id=run_id, task_queue=WORKFLOW_QUEUE)
            )
        waiting = asyncio.gather(*(handle.result() for handle in handles), return_exceptions=True)
        ready = first = None
        tasks = _Tasks()
        if size.killed is not None:
            await _answered(model, round(row.model_calls * size.killed), waiting)
            project.worker.kill()
            tasks.killed = time.time()
            ready, first = await _started_again(project.worker, model, waiting)
        try:
            results = await asyncio.wait_for(waiting, max(1.0, patience.total_seconds() - (time.time() - began)))
        except TimeoutError:
            results = []
        wall = time.time() - began
        for handle in handles:
            await _read_tasks(client, handle.id, tasks)
            for number in range(1, min(row.agents, _AGENTS_READ) + 1):
                with contextlib.suppress(RPCError):  # a run that failed early has none
                    await _read_tasks(client, f"{handle.id}/t{number}/1", tasks)
    wanted_words = f"{row.subtasks}/{row.subtasks}"
    ended = [result for result in results if isinstance(result, RunResult)]
    answered = [entry["call"] for entry in model.ledger() if entry["event"] == "answered"]
    return Crossing(
        name=row.name,
        ended=len(ended),
        whole=sum(result.status == "completed" and wanted_words in result.answer for result in ended),
        runs=row.runs,
        wall=wall,
        longest_task=tasks.longest,
        failed_tasks=tasks.failed,
        ready=ready,
        first_call=first,
        repeated=len(answered) - len(set(answered)),
        events=tasks.events,
        bytes=tasks.bytes,
    )


async def _answered(model: ModelControl, calls: int, runs: asyncio.Future[Any]) -> None:
    """Returns once so many calls are answered, or the runs have ended without."""
    while not runs.done():
        if sum(entry["event"] == "answered" for entry in model.ledger()) >= calls:
            return
        await asyncio.sleep(_LOOK)


async def _started_again(worker: Process, model: ModelControl, runs: asyncio.Future[Any]) -> tuple[float, float | None]:
    """Returns how long the new process took to be ready, and to send the first model call."""
    before = len(model.ledger())
    began = time.time()
    await worker.__aenter__()
    ready = time.time() - began
    while not (new := [e for e in model.ledger()[before:] if e["event"] == "received" and e["at"] > began]):
        if runs.done():
            return ready, None
        await asyncio.sleep(_LOOK)
    return ready, float(new[0]["at"]) - began


async def _read_tasks(client: Client, workflow_id: str, tasks: _Tasks) -> None:
    """Adds the workflow tasks of one history: how long each took, by the server's clock, and how many failed."""
    started: dict[int, float] = {}
    async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
        at = event.event_time.ToNanoseconds() / 1e9
        tasks.bytes += event.ByteSize()
        tasks.events += 1
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED:
            started[event.event_id] = at
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            begun = event.workflow_task_completed_event_attributes.started_event_id
            tasks.longest = max(tasks.longest, at - started[begun])
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            if started.get(failed.started_event_id, at) > tasks.killed:
                tasks.failed.append(f"{workflow_id}: {WorkflowTaskFailedCause.Name(failed.cause)}")
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
            timeout = event.workflow_task_timed_out_event_attributes
            # One that timed out before it started was waiting for the process that is gone.
            was_in_work = timeout.started_event_id in started and timeout.timeout_type == 1
            if was_in_work and started[timeout.started_event_id] > tasks.killed:
                tasks.failed.append(f"{workflow_id}: timed out")
