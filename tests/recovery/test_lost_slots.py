"""A Worker process that has lost the slots of its workflow tasks: it ends itself, and the next one finishes the run."""

import asyncio

from temporalio.client import Client

from runtime.watchdog import FROZEN
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from tests.recovery.ledger import answered_at, repeated
from tests.scripted_model import ScriptedModel, answer, plan, script
from tests.serving import WorkerProcesses
from workflows.supervisor import SupervisorWorkflow

LOSING = """
from datetime import timedelta
from runtime.queues.task_slots import TaskSlots
from supervision import limits
limits.TASKS_UNTAKEN = timedelta(seconds=2)
limits.TASK_WATCH_PERIOD = timedelta(milliseconds=200)
TaskSlots.release_slot = lambda slots, ctx: None
"""


async def test_a_process_whose_slots_are_lost_ends_and_nothing_is_paid_twice(
    lone_client: Client, lone_model: ScriptedModel, workers: WorkerProcesses, run_id: str
) -> None:
    chain = plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}, {"id": "t3", "after": ["t2"]})
    lone_model.play(run_id, script(chain, answer_reply=answer(cites=["t3"])))
    losing = await workers.start(before=LOSING)
    request = RunRequest(goal="go on", team="lab", max_reviews=0)
    handle = await lone_client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")
    assert await losing.ended() == FROZEN
    assert "watchdog: workflow tasks wait, and this process has asked for none for 2 s" in losing.log.read_text()
    assert lone_model.of(run_id), "it had begun"
    await workers.start()
    async with asyncio.timeout(60):
        result: RunResult = await handle.result()
    assert result.status == "completed"
    ids = [run_id, *[report.workflow_id for report in result.subtasks if report.workflow_id]]
    durable = await answered_at(lone_client, run_id, ids, workers.artifacts)
    assert repeated(lone_model.of(run_id), durable) == []
