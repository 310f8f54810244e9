"""Behind a rate limit a large run does not starve small ones; the limit is shared out, and changed while runs go on."""

import asyncio
import subprocess

import pytest
from temporalio.client import Client

from runtime.server.temporal_binary import find_temporal
from runtime.settings import Settings
from supervision.base.queues import MODEL_QUEUE
from tests.scripted_model import ScriptedModel, answer, plan, script
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from worker_main import serving

LARGE, SMALL, BESIDE = 60, 2, 3
RPM = 900  # the test teams name two pools: a third of it is the model queue's


@pytest.mark.timeout(180)
async def test_small_runs_get_their_turn_beside_a_large_one(
    model: ScriptedModel, settings: Settings, run_id: str
) -> None:
    large, *small = [f"{run_id}-{number}" for number in range(1 + BESIDE)]
    for run_id in (large, *small):
        ids = [f"t{number}" for number in range(LARGE if run_id == large else SMALL)]
        model.play(run_id, script(plan(*[{"id": subtask_id} for subtask_id in ids]), {}, answer(cites=ids[:1])))
    limited = settings.model_copy(update={"model_rpm": RPM})
    async with own_server() as client, serving(client, limited):
        await runs.start(client, large, "lab", max_subtasks=LARGE, max_parallel=LARGE)
        await until(lambda: len(model.of(large)) > 20, 60)
        await asyncio.gather(*(runs.run(client, run_id, "lab") for run_id in small))
        waits = [wait for run_id in small for wait in await model_waits(client, run_id)]
        meanwhile = [start for _, start in await model_waits(client, large)]
    assert len(waits) == BESIDE * (SMALL + 2)
    # Without turns, each waits for all that the large run has queued before it.
    assert sum(scheduled < start < started for start in meanwhile for scheduled, started in waits) < LARGE / 2


@pytest.mark.timeout(120)
async def test_a_limit_is_changed_while_a_run_goes_on(model: ScriptedModel, settings: Settings, run_id: str) -> None:
    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {}, answer(cites=["t1"])))
    async with own_server() as client, serving(client, settings.model_copy(update={"model_rpm": 1})):
        handle = await runs.start(client, run_id, "lab")
        await until(lambda: len(model.of(run_id)) == 1, 30)
        command = [str(find_temporal()), "task-queue", "config", "set", "--task-queue", MODEL_QUEUE]
        command += ["--task-queue-type", "activity", "--queue-rps-limit", "100"]
        command += ["--address", client.service_client.config.target_host]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        result = await asyncio.wait_for(handle.result(), 30)
    assert result.timing.wall_seconds < 60  # a call a minute before


async def model_waits(client: Client, run_id: str) -> list[tuple[int, int]]:
    """Returns for each model call of a run when it was scheduled and when the server gave it to a Worker."""
    waits = []
    async for described in client.list_workflows(f"WorkflowId STARTS_WITH '{run_id}'"):
        history = await client.get_workflow_handle(described.id, run_id=described.run_id).fetch_history()
        scheduled = {event.event_id: event for event in history.events}
        for event in history.events:
            if event.HasField("activity_task_started_event_attributes"):
                call = scheduled[event.activity_task_started_event_attributes.scheduled_event_id]
                if call.activity_task_scheduled_event_attributes.task_queue.name == MODEL_QUEUE:
                    waits.append((call.event_time.ToNanoseconds(), event.event_time.ToNanoseconds()))
    return waits
