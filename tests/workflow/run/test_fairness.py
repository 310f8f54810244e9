"""Behind a rate limit a large run does not starve small ones."""

import asyncio

import pytest

from runtime.settings import Settings
from tests.scripted_model import ScriptedModel, answer, plan, script
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from worker_main import serving

LARGE, SMALL, BESIDE = 100, 2, 3
RPM = 300


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
        before = len(model.of(large))
        await asyncio.gather(*(runs.run(client, run_id, "lab") for run_id in small))
        meanwhile = len(model.of(large)) - before
    calls = sum(len(model.of(run_id)) for run_id in small)
    assert calls == BESIDE * (SMALL + 2)
    assert meanwhile < LARGE / 2
