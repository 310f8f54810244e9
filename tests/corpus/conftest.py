"""What the cases of the corpus share: callers, victims, and liveness as an effect that each case is looked at for."""

import inspect
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from temporal_supervisor.supervision.contract.result import RunResult
from tests.corpus.loop_monitor import SILENCE, monitored
from tests.scripted_model import ScriptedModel, plan, script, text
from tests.task_failures import task_failures
from tests.workflow import runs
from tests.workflow.runs import Lab

SECRET = "TOP-SECRET payroll"


@pytest.fixture(autouse=True)
async def answering_loop(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Whatever a case does, the event loop, which is that of its Worker, goes on answering.

    Parsers that are called without a loop are measured by themselves (test_growth). A case with the mark `holds_loop`
    does so itself.
    """
    if request.node.get_closest_marker("holds_loop") or not inspect.iscoroutinefunction(request.function):
        yield
        return
    async with monitored() as monitor:
        yield
    assert monitor.longest < SILENCE, "the event loop was silent"


@pytest.fixture(autouse=True)
async def liveness(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """After each case that a Worker took part in an honest run ends, and no workflow task was tried again."""
    began = datetime.now(UTC)
    yield
    if "worker" not in request.fixturenames:
        return
    client: Client = request.getfixturevalue("client")
    model: ScriptedModel = request.getfixturevalue("model")
    honest = f"honest-{uuid4().hex[:12]}"
    model.play(honest, script(plan({"id": "t1", "role": "writer"})))
    assert (await runs.run(client, honest, team="lab")).status == "completed"
    assert await retried(client, began) == []


async def retried(client: Client, began: datetime) -> list[str]:
    """Returns the ids of the workflows since then of which a workflow task failed or is being tried again."""
    ids = []
    ours = "WorkflowType IN ('SupervisorWorkflow', 'WorkerAgentWorkflow')"
    async for execution in client.list_workflows(f"{ours} AND StartTime >= '{began.isoformat()}'"):
        handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
        failed = any(task_failures((await handle.fetch_history()).events))
        if not failed and execution.status is WorkflowExecutionStatus.RUNNING:  # the first try alone is in the history
            failed = (await handle.describe()).raw_description.pending_workflow_task.attempt > 1
        if failed:
            ids.append(execution.id)
    return ids


@pytest.fixture
async def victim(lab: Lab) -> RunResult:
    """A run that ended, with a secret in its goal."""
    lab.play(script(plan({"id": "t1", "role": "writer"}), {"t1": lambda step: text("nothing but the truth")}))
    return await lab.run(goal=SECRET)
