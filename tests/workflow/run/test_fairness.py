"""Behind a rate limit a large run does not starve small ones."""

import asyncio
import contextlib
import time
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.client import Client

import worker_main
from runtime import search_attributes
from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer
from runtime.settings import Settings
from runtime.workers import ALL_ROLES
from supervision.contract.request import RunRequest
from tests.conftest import LAB
from tests.scripted_model import ScriptedModel, answer, plan, script
from tests.waiting import until
from workflows.supervisor import SupervisorWorkflow

LARGE, SMALL = 200, 2
RPM = 600


@pytest.mark.timeout(180)
async def test_small_runs_get_their_turn_beside_a_large_one(model: ScriptedModel, tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None,
        artifacts_url=str(tmp_path / "artifacts"),
        teams_dir=LAB,
        ANTHROPIC_BASE_URL=model.url,
        model_rpm=RPM,
    )
    async with EmbeddedServer(shared=False, headless=True) as server:
        client = await connect(address=server.address)
        attributes = await search_attributes.ensure(client)
        async with contextlib.AsyncExitStack() as stack:
            for worker in worker_main.compose(client, settings, list(ALL_ROLES), attributes):
                await stack.enter_async_context(worker)
            large = asyncio.create_task(_timed(client, model, LARGE))
            await until(lambda: sum(call.step.kind == "turn" for call in model.calls) >= 20, 60)
            beside = await asyncio.gather(*(_timed(client, model, SMALL) for _ in range(3)))
            last = await large
            assert max(beside) < last / 2


async def _timed(client: Client, model: ScriptedModel, subtasks: int) -> float:
    run_id = f"fair-{uuid4().hex[:8]}"
    ids = [f"t{number}" for number in range(subtasks)]
    model.play(run_id, script(plan(*[{"id": id} for id in ids]), {}, answer(cites=ids[:1])))
    began = time.monotonic()
    request = RunRequest(goal="take turns", team="lab", max_subtasks=LARGE, max_parallel=LARGE, max_reviews=0)
    await client.execute_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")
    return time.monotonic() - began
