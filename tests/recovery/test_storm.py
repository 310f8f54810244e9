"""A storm: the provider answers 529 to all. It costs a handful of requests, no run is lost, all end soon after."""

import asyncio
from collections import Counter
from math import ceil

import pytest
from temporalio.client import Client

from supervision import limits
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, ScriptedModel, Step, answer, plan, script, status
from tests.serving import WorkerProcesses
from tests.waiting import until
from workflows.supervisor import SupervisorWorkflow

RUNS = 50
UNDER_WAY = 25  # when the storm begins; the others start in it
STORM = 60.0  # seconds
REQUESTS = 10  # of one process to one model until its breaker is open
AFTERWARDS = 60.0  # seconds within which all runs have ended

USUAL = script(plan({"id": "t1"}, {"id": "t2", "role": "counter"}), {}, answer(cites=["t1", "t2"]))


@pytest.mark.timeout(200)
async def test_a_storm_costs_few_requests_and_no_run(
    lone_client: Client, lone_model: ScriptedModel, workers: WorkerProcesses, run_id: str
) -> None:
    ids = [f"{run_id}-{number}" for number in range(RUNS)]
    raging = False
    refused: Counter[str] = Counter()
    served: list[str] = []

    def reply(step: Step) -> Reply:
        if raging:
            refused[step.body["model"]] += 1
            return status(529, "overloaded_error")
        served.append(step.call)
        return USUAL(step)

    for id in ids:
        lone_model.play(id, reply)
    await workers.start()
    await asyncio.gather(*(_start(lone_client, id) for id in ids[:UNDER_WAY]))
    await until(lambda: any("/turn." in call for call in served), 60)
    clock = asyncio.get_running_loop().time
    raging, over = True, clock() + STORM
    await asyncio.gather(*(_start(lone_client, id) for id in ids[UNDER_WAY:]))
    await asyncio.sleep(over - clock())
    raging = False
    async with asyncio.timeout(AFTERWARDS):
        results = await asyncio.gather(*(_result(lone_client, id) for id in ids))
    assert [result.status for result in results] == ["completed"] * RUNS
    assert len(served) == len(set(served)) > 0
    assert len(refused) == 2
    for requests in refused.values():
        assert requests <= REQUESTS + ceil(STORM / limits.BREAKER_COOLDOWN.total_seconds())


async def _start(client: Client, run_id: str) -> None:
    request = RunRequest(goal="survive the storm", team="lab")
    await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")


async def _result(client: Client, run_id: str) -> RunResult:
    result: RunResult = await client.get_workflow_handle_for(SupervisorWorkflow.run, run_id).result()
    return result
